// SPDX-License-Identifier: Apache-2.0
#include "snapshot/backup/seen.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>

#include "snapshot/file_io.h"
#include "sys/fd.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

constexpr std::string_view kMagic = "ocseen2\n";
constexpr size_t kDigestSize = 32;
constexpr size_t kPlaceSize = 12;  // of a folder in the table at the end: 8 bytes offset, 4 bytes number
constexpr size_t kTailSize = 16;   // 8 bytes where the table begins, 8 bytes number of folders
constexpr uint64_t kNameMost = 1 << 20;     // of names, targets and paths
constexpr uint64_t kXattrsMost = 64 << 20;  // of one entry
constexpr int64_t kRacyNs = 100'000'000, kRacyWholeSecondsNs = 2'000'000'000;

template <typename N>
void AppendFixed(std::string* out, N value) {
  out->append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <typename N>
N Fixed(std::string_view bytes) {
  N value{};
  if (bytes.size() == sizeof value) std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

void AppendEntry(std::string* out, const SeenEntry& entry) {
  const SeenStamp& stamp = entry.stamp;
  AppendBytes(out, entry.name);
  out->push_back(static_cast<char>(entry.type));
  AppendVarint(out, entry.xattrs.empty() ? entry.flags & ~kSeenHasXattrs : entry.flags | kSeenHasXattrs);
  AppendVarint(out, stamp.inode);
  AppendVarint(out, static_cast<uint64_t>(stamp.size));
  AppendFixed(out, stamp.mtime_ns);
  AppendFixed(out, stamp.ctime_ns);
  AppendVarint(out, stamp.mode);
  AppendVarint(out, stamp.uid);
  AppendVarint(out, stamp.gid);
  if (entry.IsFile()) {
    out->push_back(static_cast<char>(entry.content.kind));
    if (entry.content.kind != FileContent::Kind::kEmpty) AppendDigest(out, entry.content.id);
  }
  if (entry.type == SnapshotEntryType::kSymlink) AppendBytes(out, entry.target);
  if (!entry.xattrs.empty()) AppendBytes(out, entry.xattrs);
}

void ReadEntry(ByteReader* bytes, SeenEntry* entry) {
  SeenStamp& stamp = entry->stamp;
  entry->name = bytes->Bytes(kNameMost);
  entry->type = static_cast<SnapshotEntryType>(bytes->Byte());
  entry->flags = static_cast<uint32_t>(bytes->Varint());
  stamp.inode = bytes->Varint();
  stamp.size = static_cast<int64_t>(bytes->Varint());
  stamp.mtime_ns = Fixed<int64_t>(bytes->Raw(8));
  stamp.ctime_ns = Fixed<int64_t>(bytes->Raw(8));
  stamp.mode = static_cast<uint32_t>(bytes->Varint());
  stamp.uid = static_cast<uint32_t>(bytes->Varint());
  stamp.gid = static_cast<uint32_t>(bytes->Varint());
  entry->content = FileContent();
  if (entry->IsFile()) {
    entry->content.kind = static_cast<FileContent::Kind>(bytes->Byte());
    if (entry->content.kind != FileContent::Kind::kEmpty) entry->content.id = bytes->Id();
  }
  entry->target = entry->type == SnapshotEntryType::kSymlink ? bytes->Bytes(kNameMost) : std::string_view();
  entry->xattrs = (entry->flags & kSeenHasXattrs) != 0 ? bytes->Bytes(kXattrsMost) : std::string_view();
}

// A whole file in memory that is not cleared first; nothing when it cannot be read.
struct FileBytes {
  std::unique_ptr<char[]> data;
  size_t size = 0;

  std::string_view View() const { return {data.get(), size}; }
  static FileBytes Read(const std::string& file) {
    FileBytes bytes;
    const Fd fd(open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat status;
    if (!fd || fstat(fd.Get(), &status) != 0 || !S_ISREG(status.st_mode)) return bytes;
    const size_t expected = static_cast<size_t>(status.st_size);
    bytes.data.reset(new char[expected]);
    while (bytes.size < expected) {
      const ssize_t got = ReadSome(fd.Get(), bytes.data.get() + bytes.size, expected - bytes.size);
      if (got <= 0) break;
      bytes.size += static_cast<size_t>(got);
    }
    return bytes;
  }
};

}  // namespace

SeenStamp SeenStamp::Of(const struct statx& status) {
  const auto nanoseconds = [](const statx_timestamp& time) {
    return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  };
  SeenStamp stamp;
  stamp.inode = status.stx_ino;
  stamp.size = S_ISDIR(status.stx_mode) ? 0 : static_cast<int64_t>(status.stx_size);
  stamp.mtime_ns = nanoseconds(status.stx_mtime);
  stamp.ctime_ns = nanoseconds(status.stx_ctime);
  stamp.mode = S_ISLNK(status.stx_mode) ? 0777 : status.stx_mode & 07777U;
  stamp.uid = status.stx_uid;
  stamp.gid = status.stx_gid;
  return stamp;
}

struct Seen::State {
  FileBytes file;
  std::string_view lists;   // the folders' children
  std::string_view places;  // the table of the folders
  int64_t began_ns = 0;
  Digest tree;
  SeenEntry root;
  uint32_t folders = 0;

  bool Parse(std::string_view repository_id, std::string_view folder);
};

bool Seen::State::Parse(std::string_view repository_id, std::string_view folder) {
  std::string_view all = file.View();
  if (all.size() < kMagic.size() + kDigestSize + kTailSize || !all.starts_with(kMagic)) return false;
  const Digest sum = ByteReader(all.substr(all.size() - kDigestSize)).Id();
  all.remove_suffix(kDigestSize);
  if (Sha256Of(all) != sum) return false;

  ByteReader head(all.substr(kMagic.size()));
  began_ns = Fixed<int64_t>(head.Raw(8));
  tree = head.Id();
  if (head.Bytes(kNameMost) != repository_id || head.Bytes(kNameMost) != folder) return false;
  ReadEntry(&head, &root);
  if (!head.ok() || !root.IsFolder()) return false;

  const uint64_t table = Fixed<uint64_t>(all.substr(all.size() - kTailSize, 8));
  const uint64_t count = Fixed<uint64_t>(all.substr(all.size() - 8));
  if (count == 0 || count > UINT32_MAX || table > all.size() - kTailSize ||
      count * kPlaceSize != all.size() - kTailSize - table) {
    return false;
  }
  folders = static_cast<uint32_t>(count);
  lists = all.substr(0, table);
  places = all.substr(table, count * kPlaceSize);
  return true;
}

std::optional<Seen> Seen::Load(const std::string& file, std::string_view repository_id,
                               std::string_view folder) {
  Seen seen;
  seen.state_->file = FileBytes::Read(file);
  if (!seen.state_->Parse(repository_id, folder)) return std::nullopt;
  return seen;
}

Seen::Seen() : state_(std::make_unique<State>()) {}
Seen::~Seen() = default;
Seen::Seen(Seen&&) noexcept = default;
Seen& Seen::operator=(Seen&&) noexcept = default;

int64_t Seen::began_ns() const {
  return state_->began_ns;
}
const Digest& Seen::tree() const {
  return state_->tree;
}
const SeenEntry& Seen::root() const {
  return state_->root;
}
uint32_t Seen::folder_count() const {
  return state_->folders;
}

SeenCursor Seen::Open(uint32_t folder) const {
  SeenCursor cursor;
  if (folder >= state_->folders) return cursor;
  const std::string_view place = state_->places.substr(size_t{folder} * kPlaceSize, kPlaceSize);
  const uint64_t offset = Fixed<uint64_t>(place.substr(0, 8));
  if (offset >= state_->lists.size()) return cursor;
  cursor.bytes_ = ByteReader(state_->lists.substr(offset));
  cursor.left_ = cursor.bytes_.Varint();
  cursor.next_folder_ = Fixed<uint32_t>(place.substr(8));
  if (cursor.next_folder_ <= folder) return SeenCursor();
  cursor.folder_count_ = state_->folders;
  return cursor;
}

std::vector<SeenEntry> Seen::Children(uint32_t folder) const {
  std::vector<SeenEntry> children;
  SeenCursor cursor = Open(folder);
  for (SeenEntry entry; cursor.Next(&entry);) children.push_back(entry);
  return children;
}

bool SeenCursor::Next(SeenEntry* entry) {
  if (left_ == 0) return false;
  --left_;
  ReadEntry(&bytes_, entry);
  if (!bytes_.ok()) {
    left_ = 0;
    return false;
  }
  // Only ever forward: whatever the file says, nobody who goes down by these numbers goes in circles.
  entry->folder = entry->IsFolder() ? std::min(next_folder_++, folder_count_) : 0;
  return true;
}

struct SeenWriter::State {
  std::string bytes;
  std::string places;
  size_t tree_at = 0;
  uint32_t next_folder = 1;
  uint64_t folders = 0;
};

SeenWriter::SeenWriter(int64_t began_ns, std::string_view repository_id, std::string_view folder,
                       const SeenEntry& root)
    : state_(std::make_unique<State>()) {
  std::string& bytes = state_->bytes;
  bytes.append(kMagic);
  AppendFixed(&bytes, began_ns);
  state_->tree_at = bytes.size();
  AppendDigest(&bytes, Digest());
  AppendBytes(&bytes, repository_id);
  AppendBytes(&bytes, folder);
  SeenEntry named = root;
  named.name = {};
  named.type = SnapshotEntryType::kFolder;
  AppendEntry(&bytes, named);
}

SeenWriter::~SeenWriter() = default;

void SeenWriter::Reserve(size_t entries) {
  constexpr size_t kUsual = 100;
  state_->bytes.reserve(state_->bytes.size() + entries * kUsual);
}

void SeenWriter::Folder(const std::vector<SeenEntry>& children) {
  BeginFolder(children.size());
  for (const SeenEntry& child : children) Add(child);
}

void SeenWriter::BeginFolder(uint64_t count) {
  AppendFixed(&state_->places, uint64_t{state_->bytes.size()});
  AppendFixed(&state_->places, state_->next_folder);
  ++state_->folders;
  AppendVarint(&state_->bytes, count);
}

void SeenWriter::Add(const SeenEntry& entry) {
  if (entry.IsFolder()) ++state_->next_folder;
  AppendEntry(&state_->bytes, entry);
}

Result<void> SeenWriter::Finish(const Digest& tree, const std::string& file) {
  std::string& bytes = state_->bytes;
  std::memcpy(bytes.data() + state_->tree_at, tree.bytes.data(), tree.bytes.size());
  const uint64_t table = bytes.size();
  bytes.append(state_->places);
  AppendFixed(&bytes, table);
  AppendFixed(&bytes, state_->folders);
  AppendDigest(&bytes, Sha256Of(bytes));
  return PosixFiles().WriteAtomic(file, bytes, /*durable=*/false);
}

std::string EncodeXattrs(const std::vector<ExtendedAttribute>& xattrs) {
  std::string out;
  if (xattrs.empty()) return out;
  AppendVarint(&out, xattrs.size());
  for (const ExtendedAttribute& xattr : xattrs) {
    AppendBytes(&out, xattr.name);
    AppendBytes(&out, xattr.value);
  }
  return out;
}

std::optional<std::vector<ExtendedAttribute>> DecodeXattrs(std::string_view encoded) {
  std::vector<ExtendedAttribute> xattrs;
  if (encoded.empty()) return xattrs;
  ByteReader bytes(encoded);
  for (uint64_t left = bytes.VarintUpTo(encoded.size()); left > 0 && bytes.ok(); --left) {
    ExtendedAttribute xattr;
    xattr.name = bytes.Bytes(kNameMost);
    xattr.value = bytes.Bytes(kXattrsMost);
    xattrs.push_back(std::move(xattr));
  }
  if (!bytes.AtEnd()) return std::nullopt;
  return xattrs;
}

bool RacilySeen(const SeenStamp& stamp, int64_t began_ns) {
  const bool whole_seconds = stamp.mtime_ns % 1'000'000'000 == 0 && stamp.ctime_ns % 1'000'000'000 == 0;
  return stamp.ctime_ns > began_ns - (whole_seconds ? kRacyWholeSecondsNs : kRacyNs);
}

}  // namespace overcap
