// SPDX-License-Identifier: Apache-2.0
#include "snapshot/backup/scan_worker.h"

#include <array>
#include <cerrno>
#include <dirent.h>
#include <fcntl.h>

#include "base/text.h"
#include "snapshot/backup/long_path.h"
#include "snapshot/backup/xattrs.h"
#include "snapshot/file_io.h"

namespace overcap {
namespace {

constexpr size_t kOpenMost = 32;                      // folders that one thread keeps open
constexpr size_t kFolderPathMost = (1 << 20) - 1024;  // a tree has no paths beyond 1 MiB
constexpr int64_t kBlock = 4096;                      // no hole is smaller

bool Vanished(int error_number) {
  return error_number == ENOENT || error_number == ENOTDIR || error_number == ELOOP;
}

unsigned char TypeOf(uint16_t mode) {
  return static_cast<unsigned char>(IFTODT(mode));
}

std::optional<SnapshotEntryType> KeptType(unsigned char type) {
  switch (type) {
    case DT_REG:
      return SnapshotEntryType::kFile;
    case DT_DIR:
      return SnapshotEntryType::kFolder;
    case DT_LNK:
      return SnapshotEntryType::kSymlink;
    default:
      return std::nullopt;
  }
}

std::string_view SkippedWhat(unsigned char type) {
  switch (type) {
    case DT_SOCK:
      return "a socket";
    case DT_FIFO:
      return "a pipe";
    case DT_CHR:
    case DT_BLK:
      return "a device";
    default:
      return "neither file, folder nor link";
  }
}

// Whether the cache knows an entry of this type with exactly this stamp as part of the tree.
bool Knows(const SeenEntry& known, SnapshotEntryType type, const SeenStamp& stamp) {
  const bool same_type = known.type == type || (known.IsFile() && type == SnapshotEntryType::kFile);
  return same_type && known.stamp == stamp && (known.flags & kSeenNotInTree) == 0;
}

}  // namespace

std::string ProblemText(int error_number) {
  std::string text = ErrnoError(error_number, "").message;
  text.erase(0, text.find_first_not_of(": "));
  if (!text.empty() && text[0] >= 'A' && text[0] <= 'Z') text[0] = static_cast<char>(text[0] - 'A' + 'a');
  return text;
}

void ScanWorker::Run() {
  while (const std::optional<ScanTask> task = queue_->Pop()) {
    if (!Folder(*task)) return queue_->GiveUp();
    if (rules_.request->found != nullptr) {
      *rules_.request->found += static_cast<int64_t>(folder_->entries.size());
    }
    if (rules_.request->on_progress) rules_.request->on_progress();
    queue_->Finish(folder_, cached_);
  }
}

// False when the scan was stopped.
bool ScanWorker::Folder(const ScanTask& task) {
  folder_ = task.folder;
  cached_.clear();
  folder_path_.reset();
  SeenCursor known;
  if (task.cached >= 0) known = rules_.request->seen->Open(static_cast<uint32_t>(task.cached));
  fd_ = OpenFolder();
  if (fd_ < 0) {
    CannotOpen(errno, known);
    return !rules_.Stopped();
  }
  SettleFolder(fd_);
  if (const int error = names_.List(fd_); error != 0) {
    problems_.push_back({folder_->Path(), ProblemText(error), false});
  }
  folder_->entries.reserve(names_.names().size());
  SeenEntry entry;
  bool have = known.Next(&entry);
  size_t count = 0;
  for (const Name& name : names_.names()) {
    if ((count++ & 0xFFF) == 0 && rules_.Stopped()) return false;
    for (; have && entry.name < name.text; have = known.Next(&entry)) removed_ = true;
    const bool same_name = have && entry.name == name.text;
    Entry(name, same_name ? &entry : nullptr);
    if (same_name) have = known.Next(&entry);
  }
  if (have) removed_ = true;
  return true;
}

void ScanWorker::Keep(const SeenEntry& known) {
  ScannedEntry& entry = folder_->entries.emplace_back();
  entry.seen = known;
  if (known.IsFile()) entry.seen.type = SnapshotEntryType::kFile;
  entry.fate = EntryFate::kSame;
  cached_.push_back(known.IsFolder() ? int64_t{known.folder} : -1);
}

// The attributes of the folder itself, which only an open one has.
void ScanWorker::SettleFolder(int fd) {
  ScannedEntry& self = *folder_->self;
  if (self.fate == EntryFate::kSame) return;
  const std::string xattrs = ReadXattrs(fd);
  if (self.fate == EntryFate::kProve && xattrs == self.seen.xattrs) {
    self.fate = EntryFate::kSame;
    return;
  }
  self.fate = EntryFate::kNew;
  self.seen.xattrs = bytes_.Keep(xattrs);
}

void ScanWorker::CannotOpen(int error_number, SeenCursor known) {
  ScannedEntry& self = *folder_->self;
  if (SeenEntry entry; known.Next(&entry)) removed_ = true;
  if (Vanished(error_number) && folder_->parent != nullptr) {
    if (self.fate != EntryFate::kNew) removed_ = true;
    self.fate = EntryFate::kGone;
    return;
  }
  if (self.fate == EntryFate::kProve) self.fate = EntryFate::kNew;
  problems_.push_back({folder_->Path(), ProblemText(error_number), false});
}

void ScanWorker::Entry(const Name& name, const SeenEntry* known) {
  if (folder_->parent == nullptr && name.text == rules_.request->keep_name) return;
  if (name.type != DT_UNKNOWN) {
    if (Excluded(name.text, name.type == DT_DIR)) {
      if (known != nullptr) removed_ = true;
      return;
    }
    if (!KeptType(name.type)) {
      if (known != nullptr) removed_ = true;
      return Skip(name, name.type);
    }
  }
  Look(name, known);
}

void ScanWorker::Look(const Name& name, const SeenEntry* known) {
  struct statx status;
  if (statx(fd_, name.text.data(), AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_BASIC_STATS, &status) != 0) {
    return Missed(name, errno, known);
  }
  const unsigned char type = TypeOf(status.stx_mode);
  const std::optional<SnapshotEntryType> kept = KeptType(type);
  const bool excluded = name.type == DT_UNKNOWN && Excluded(name.text, type == DT_DIR);
  if (kept && !excluded) return Add(name, status, *kept, known);
  if (known != nullptr) removed_ = true;
  if (!excluded) Skip(name, type);
}

void ScanWorker::Add(const Name& name, const struct statx& status, SnapshotEntryType type,
                     const SeenEntry* known) {
  const SeenStamp stamp = SeenStamp::Of(status);
  const bool is_known = known != nullptr && Knows(*known, type, stamp);
  if (is_known) {
    Keep(*known);
  } else {
    ScannedEntry& fresh = folder_->entries.emplace_back();
    fresh.seen.name = bytes_.Keep(name.text);
    fresh.seen.type = type;
    fresh.seen.stamp = stamp;
    cached_.push_back(known != nullptr && known->IsFolder() ? int64_t{known->folder} : -1);
  }
  ScannedEntry& entry = folder_->entries.back();
  const bool is_file = type == SnapshotEntryType::kFile;
  if (is_known && RacilySeen(stamp, rules_.request->seen->began_ns())) {
    entry.fate = EntryFate::kProve;
    racy_ = true;
  }
  if (is_file && (!is_known || (known->flags & kSeenUnsteady) != 0)) entry.fate = EntryFate::kRead;
  entry.sparse =
      is_file && stamp.size >= kBlock && static_cast<int64_t>(status.stx_blocks) * 512 < stamp.size;
  if (is_file && status.stx_nlink > 1) {
    entry.seen.flags |= kSeenHardLink;
    folder_->links.push_back(
        {folder_->entries.size() - 1, uint64_t{status.stx_dev_major} << 32 | status.stx_dev_minor});
  }
  if (type == SnapshotEntryType::kSymlink && entry.fate != EntryFate::kSame)
    SettleLink(name, is_known, &entry);
}

void ScanWorker::SettleLink(const Name& name, bool is_known, ScannedEntry* entry) {
  Result<std::string> target = ReadLinkAt(fd_, name.text.data());
  if (!target) {
    const int error_number = errno;
    folder_->entries.pop_back();
    cached_.pop_back();
    const SeenEntry known;
    return Missed(name, error_number, is_known ? &known : nullptr);
  }
  const std::string xattrs = ReadXattrsAt(fd_, name.text.data());
  const bool same = is_known && *target == entry->seen.target && xattrs == entry->seen.xattrs;
  entry->fate = same ? EntryFate::kSame : EntryFate::kNew;
  if (same) return;
  entry->seen.target = bytes_.Keep(*target);
  entry->seen.xattrs = bytes_.Keep(xattrs);
}

// What vanished between being listed and being looked at is not part of the folder any more.
void ScanWorker::Missed(const Name& name, int error_number, const SeenEntry* known) {
  if (known != nullptr) removed_ = true;
  if (!Vanished(error_number)) problems_.push_back({PathOf(name.text), ProblemText(error_number), false});
}

void ScanWorker::Skip(const Name& name, unsigned char type) {
  problems_.push_back({PathOf(name.text), std::string(SkippedWhat(type)), true});
}

bool ScanWorker::Excluded(std::string_view name, bool is_folder) {
  if (!rules_.exclude) return false;
  return rules_.exclude->Match(PathOf(name), is_folder) == IgnoreVerdict::kIgnored;
}

const std::string& ScanWorker::FolderPath() {
  if (!folder_path_) {
    folder_path_ = folder_->Path();
    if (!folder_path_->empty()) folder_path_->push_back('/');
  }
  return *folder_path_;
}

std::string ScanWorker::PathOf(std::string_view name) {
  return StrCat(FolderPath(), name);
}

// The folder at hand, open, or -1 with errno: by way of the one above it, which mostly is open already.
int ScanWorker::OpenFolder() {
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  if (folder_->path_length > kFolderPathMost) {
    errno = ENAMETOOLONG;
    return -1;
  }
  while (!open_.empty() && open_.back().first != folder_->parent) open_.pop_back();
  Fd fd;
  if (open_.empty()) {
    fd = OpenBelow(rules_.root_fd, folder_->Path(), kFlags);
  } else {
    scratch_ = folder_->self->seen.name;
    fd.Reset(openat(open_.back().second.Get(), scratch_.c_str(), kFlags));
  }
  if (!fd) return -1;
  if (open_.size() == kOpenMost) open_.erase(open_.begin());
  open_.emplace_back(folder_, std::move(fd));
  return open_.back().second.Get();
}

}  // namespace overcap
