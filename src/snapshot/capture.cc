// SPDX-License-Identifier: Apache-2.0
#include "snapshot/capture.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <memory>
#include <optional>
#include <thread>
#include <unistd.h>

#include "base/text.h"
#include "snapshot/capture_index.h"
#include "snapshot/code_writer.h"
#include "snapshot/file_io.h"
#include "snapshot/parallel.h"
#include "snapshot/path_order.h"
#include "snapshot/walk.h"

namespace overcap {
namespace {

constexpr int64_t kProgressEveryUs = 50'000;

std::string RealPath(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> real(realpath(path.c_str(), nullptr), std::free);
  return real ? real.get() : "";
}

std::string ParentOf(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}

// Tells the caller how far it is; only from the thread that it was made in, and not too often.
class Progress {
 public:
  Progress(const SnapshotStore& store, const CaptureOptions& options)
      : store_(store), options_(options), owner_(std::this_thread::get_id()) {}

  void AddFile() { ++files_; }

  void AddBytes(int64_t bytes) {
    bytes_ += bytes;
    if (!options_.progress || std::this_thread::get_id() != owner_) return;
    const int64_t now = store_.NowUs();
    if (now >= last_us_ && now - last_us_ < kProgressEveryUs) return;
    last_us_ = now;
    options_.progress(files_, bytes_);
  }

 private:
  const SnapshotStore& store_;
  const CaptureOptions& options_;
  const std::thread::id owner_;
  int64_t last_us_ = 0;
  std::atomic<int64_t> files_ = 0;
  std::atomic<int64_t> bytes_ = 0;
};

// One capture; the store is locked.
class Capturing {
 public:
  Capturing(const SnapshotStore& store, const CaptureOptions& options, std::string folder, Fd fd)
      : store_(store),
        options_(options),
        folder_(std::move(folder)),
        fd_(std::move(fd)),
        progress_(store, options) {
    now_.folder = folder_;
    now_.began_ns = store.NowUs() * 1000;
  }

  Result<CaptureReport> Run(const std::string& skip) {
    LoadIndex();
    OC_TRY(walked, Look(skip));
    report_.notes = std::move(walked.notes);
    Join(std::move(walked.entries));
    OC_TRY_VOID(Prove());
    if (todo_.empty() && !changed_) {
      UseOldTree();
    } else {
      OC_TRY_VOID(StoreNewTree());
    }
    Summarise();
    return std::move(report_);
  }

 private:
  Result<WalkResult> Look(const std::string& skip) const {
    IgnoreStack ignore = IgnoreStackFor(folder_);
    if (!options_.limit) return Walk(fd_.Get(), std::move(ignore), skip);
    const WalkLimit limit{options_.limit->files, options_.limit->bytes};
    Result<WalkResult> walked = Walk(fd_.Get(), std::move(ignore), skip, limit);
    return walked ? std::move(walked) : Fail(options_.limit->refuse(walked.error()));
  }

  // An index whose tree is gone is not believed: who knows what else is.
  void LoadIndex() {
    index_path_ = StrCat("captures/", Sha256Of(folder_).Hex(), ".index");
    std::optional<CaptureIndex> index = DecodeIndex(ReadFileOrNothing(store_.LocalFd(), index_path_));
    if (index && index->folder == folder_ && store_.HasTree(index->tree)) {
      before_ = std::move(*index);
    } else {
      changed_ = true;
    }
  }

  // Takes over from the index what is known of unchanged files; the others go to todo_, or to unproven_ when
  // only their times are too near. Both are in the same order.
  void Join(std::vector<FoundEntry> found) {
    now_.entries.reserve(found.size());
    now_.stamps.reserve(found.size());
    size_t old = 0;
    const auto here = [&](const FoundEntry& entry) {
      return old < before_.entries.size() && before_.entries[old].path == entry.path;
    };
    for (FoundEntry& entry : found) {
      while (!here(entry) && old < before_.entries.size() &&
             PathBefore(before_.entries[old].path, entry.path)) {
        changed_ = true;
        ++old;
      }
      const bool match = here(entry);
      if (match && Unchanged(old, entry)) {
        if (RacilyClean(entry.stamp, before_.began_ns) && entry.kind != EntryKind::kFolder) {
          unproven_.push_back(now_.entries.size());
        }
        Add(std::move(before_.entries[old]), entry.stamp);
      } else {
        AddUnknown(std::move(entry));
      }
      if (match) ++old;
    }
    changed_ |= old < before_.entries.size();
  }

  bool Unchanged(size_t old, const FoundEntry& found) const {
    if (before_.entries[old].kind != found.kind) return false;
    return found.kind == EntryKind::kFolder || before_.stamps[old] == found.stamp;
  }

  void Add(CodeEntry entry, const FileStamp& stamp) {
    now_.entries.push_back(std::move(entry));
    now_.stamps.push_back(stamp);
  }

  void AddUnknown(FoundEntry found) {
    if (found.kind == EntryKind::kFolder) {
      changed_ = true;
    } else {
      todo_.push_back(now_.entries.size());
    }
    Add(CodeEntry{std::move(found.path), found.kind, 0, {}, {}}, found.stamp);
  }

  // Files whose stamps do not tell whether they changed are read: mostly they did not, and nothing has to be
  // stored.
  Result<void> Prove() {
    if (unproven_.empty()) return {};
    const ChunkSizes& sizes = store_.repository().config().chunks;
    HashSink sink;
    SegmentReader reader(sizes, &sink);
    for (const size_t at : unproven_) {
      CodeEntry entry = now_.entries[at];
      const auto hash = [&](int fd, int64_t size, std::string_view what) {
        return ReadCode(fd, size, sizes, &reader, &sink, what,
                        [&](int64_t bytes) { progress_.AddBytes(bytes); });
      };
      OC_TRY(there, Read(&entry, &now_.stamps[at], hash));
      if (!there || entry != now_.entries[at]) {
        todo_.push_back(at);
      } else {
        ++report_.read_files;
      }
    }
    std::sort(todo_.begin(), todo_.end());
    return {};
  }

  void UseOldTree() {
    now_.tree = before_.tree;
    store_.TouchTree(now_.tree);
    if (!unproven_.empty()) SaveIndex();
  }

  // When contents that the index knows turn out to be gone, or about to go, all is read and stored again.
  Result<void> StoreNewTree() {
    Result<void> stored = TryToStore();
    if (stored || stored.error().code != ErrorCode::kConflict) return stored;
    todo_.clear();
    for (size_t at = 0; at < now_.entries.size(); ++at) {
      if (now_.entries[at].kind != EntryKind::kFolder) todo_.push_back(at);
    }
    return TryToStore();
  }

  Result<void> TryToStore() {
    OC_TRY(writer, CodeWriter::Start(store_.repository()));
    gone_.assign(now_.entries.size(), 0);
    OC_TRY_VOID(ParallelFor(todo_.size(), [&](size_t i) { return StoreEntry(todo_[i], writer.get()); }));
    report_.read_files += static_cast<int64_t>(todo_.size());
    report_.new_files += writer->new_files();
    report_.new_bytes += writer->new_bytes();
    DropGone();
    OC_TRY(tree, writer->Finish(now_.entries));
    now_.tree = tree;
    SaveIndex();
    return {};
  }

  Result<void> StoreEntry(size_t at, CodeWriter* writer) {
    const auto store = [&](int fd, int64_t size, std::string_view what) {
      return writer->AddFile(fd, size, what, [&](int64_t bytes) { progress_.AddBytes(bytes); });
    };
    OC_TRY(there, Read(&now_.entries[at], &now_.stamps[at], store));
    gone_[at] = there ? 0 : 1;
    if (there) progress_.AddFile();
    return {};
  }

  using ReadContent = std::function<Result<CodeContent>(int fd, int64_t size, std::string_view what)>;

  // Brings the entry up to date; false: removed since the walk.
  Result<bool> Read(CodeEntry* entry, FileStamp* stamp, const ReadContent& read) {
    return entry->kind == EntryKind::kLink ? ReadLink(entry) : ReadFile(entry, stamp, read);
  }

  Result<bool> ReadLink(CodeEntry* entry) {
    Result<std::string> target = ReadLinkAt(fd_.Get(), entry->path);
    if (!target) return GoneOr(std::move(target).error(), entry->path);
    entry->target = std::move(*target);
    entry->size = static_cast<int64_t>(entry->target.size());
    progress_.AddBytes(entry->size);
    return true;
  }

  Result<bool> ReadFile(CodeEntry* entry, FileStamp* stamp, const ReadContent& read) {
    const Fd fd(openat(fd_.Get(), entry->path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    const std::string what = StrCat("cannot read '", entry->path, "'");
    struct stat status;
    if (!fd || fstat(fd.Get(), &status) != 0) return GoneOr(ErrnoError(errno, what), entry->path);
    if (!S_ISREG(status.st_mode)) {
      return Fail(ErrorCode::kUnavailable, StrCat("'", entry->path, "' was replaced while it was captured"),
                  "try again");
    }
    *stamp = FileStamp::Of(status);
    entry->kind = (status.st_mode & S_IXUSR) != 0 ? EntryKind::kExecutable : EntryKind::kFile;
    OC_TRY(content, read(fd.Get(), status.st_size, what));
    entry->size = content.size;
    entry->content = content.content;
    // Changed while it was read: what was read is stored, and the next capture reads it again.
    if (fstat(fd.Get(), &status) != 0 || FileStamp::Of(status) != *stamp) *stamp = FileStamp{};
    return true;
  }

  static Result<bool> GoneOr(Error error, const std::string& path) {
    if (error.code == ErrorCode::kNotFound) return false;
    error.hint = StrCat("make it readable, or add the line '/", path, "' to .overcapignore to leave it out");
    return Fail(std::move(error));
  }

  void DropGone() {
    size_t kept = 0;
    for (size_t i = 0; i < gone_.size(); ++i) {
      if (gone_[i] != 0) continue;
      if (kept != i) {
        now_.entries[kept] = std::move(now_.entries[i]);
        now_.stamps[kept] = now_.stamps[i];
      }
      ++kept;
    }
    now_.entries.resize(kept);
    now_.stamps.resize(kept);
  }

  // Only a cache: without it the next capture is slower, that is all.
  void SaveIndex() {
    const std::string temporary = TemporaryName("index");
    const int folder = store_.LocalFd();
    const Fd fd(openat(folder, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!fd) return;
    if (!WriteWhole(fd.Get(), EncodeIndex(now_)) ||
        renameat(folder, temporary.c_str(), folder, index_path_.c_str()) != 0) {
      (void)unlinkat(folder, temporary.c_str(), 0);
    }
  }

  void Summarise() {
    for (const CodeEntry& entry : now_.entries) {
      if (entry.kind == EntryKind::kFolder) continue;
      ++report_.files;
      report_.bytes += entry.size;
    }
    report_.largest = FindLargest(now_.entries);
    report_.tree_id = now_.tree.Hex();
  }

  const SnapshotStore& store_;
  const CaptureOptions& options_;
  const std::string folder_;
  const Fd fd_;
  std::string index_path_;
  CaptureIndex before_;
  CaptureIndex now_;
  bool changed_ = false;          // the set of entries differs from that of before_
  std::vector<size_t> todo_;      // entries of now_ that have to be read and stored
  std::vector<size_t> unproven_;  // entries of now_ that may be as the index says
  std::vector<char> gone_;        // entries of now_ that vanished
  Progress progress_;
  CaptureReport report_;
};

// The path of `inner` below `outer`, or "".
std::string PathInside(const std::string& outer, const std::string& inner) {
  const std::string prefix = outer == "/" ? "/" : outer + "/";
  return inner.rfind(prefix, 0) == 0 ? inner.substr(prefix.size()) : "";
}

}  // namespace

Result<CaptureReport> Capture(const SnapshotStore& store, const std::string& folder,
                              const CaptureOptions& options) {
  const std::string real = RealPath(folder);
  Fd fd;
  if (!real.empty()) fd = Fd(open(real.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return Fail(ErrnoError(errno, StrCat("cannot capture the folder '", folder, "'")));
  const std::string root = options.root.empty() ? ParentOf(RealPath(store.Folder())) : RealPath(options.root);
  if (real == root) {
    return Fail(ErrorCode::kUsage, StrCat("'", folder, "' is the folder in which Overcap keeps its jobs"),
                "change to the folder of your code");
  }
  OC_TRY(lock, store.LockShared());
  return Capturing(store, options, real, std::move(fd)).Run(PathInside(real, root));
}

}  // namespace overcap
