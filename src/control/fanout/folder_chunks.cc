// SPDX-License-Identifier: Apache-2.0
#include "control/fanout/folder_chunks.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/text.h"
#include "snapshot/restore/content_cursor.h"

namespace overcap {
namespace {

constexpr std::string_view kMagic = "ocfchnk1";
constexpr size_t kDigestBytes = 32, kSpotBytes = 48;

void PutNumber(std::string* out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out->push_back(static_cast<char>(value >> (8 * i)));
}

// Takes numbers and bytes off the front; once something is missing it stays at the end.
class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : rest_(bytes) {}
  std::string_view Take(size_t count) {
    if (count > rest_.size()) {
      bad_ = true;
      rest_ = {};
      return {};
    }
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  uint64_t Number(size_t count) {
    uint64_t value = 0;
    const std::string_view taken = Take(count);
    for (size_t i = 0; i < taken.size(); ++i)
      value |= uint64_t{static_cast<unsigned char>(taken[i])} << (8 * i);
    return value;
  }
  size_t Left() const { return rest_.size(); }
  bool bad() const { return bad_; }

 private:
  std::string_view rest_;
  bool bad_ = false;
};

// Through no link and never out of the folder, where the kernel can see to that.
int OpenBeneath(int folder, const char* path) {
  open_how how{};
  how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  const long fd = syscall(SYS_openat2, folder, path, &how, sizeof how);
  if (fd >= 0 || errno != ENOSYS) return static_cast<int>(fd);
  return openat(folder, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
}

bool IsInside(std::string_view path) {
  if (path.empty() || path.front() == '/' || path.find('\0') != path.npos) return false;
  for (const std::string& part : Split(path, '/')) {
    if (part.empty() || part == "." || part == "..") return false;
  }
  return true;
}

}  // namespace

Result<FolderChunks> FolderChunks::Of(const WantedTree& tree, const GetMeta& get, const std::string& folder) {
  FolderChunks made;
  made.folder_ = folder;
  for (uint32_t entry = 0; entry < tree.size(); ++entry) {
    const WantedEntry& file = tree[entry];
    if (!file.IsFile() || file.size == 0) continue;
    const auto number = static_cast<uint32_t>(made.files_.size());
    made.files_.push_back(tree.Path(entry));
    if (file.content == FileContent::Kind::kChunk) {
      made.spots_.try_emplace(file.id, Spot{number, static_cast<uint32_t>(file.size), 0});
      continue;
    }
    ContentCursor cursor(file, get);
    for (;;) {
      OC_TRY(part, cursor.Next());
      if (!part) break;
      if (part->part.kind != ContentPart::Kind::kChunk) continue;
      made.spots_.try_emplace(part->part.id,
                              Spot{number, static_cast<uint32_t>(part->part.length), part->offset});
    }
  }
  return made;
}

std::string FolderChunks::Encode() const {
  std::string out(kMagic);
  PutNumber(&out, files_.size(), 8);
  for (const std::string& file : files_) {
    PutNumber(&out, file.size(), 4);
    out.append(file);
  }
  PutNumber(&out, spots_.size(), 8);
  for (const auto& [id, spot] : spots_) {
    out.append(reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size());
    PutNumber(&out, spot.file, 4);
    PutNumber(&out, spot.size, 4);
    PutNumber(&out, static_cast<uint64_t>(spot.offset), 8);
  }
  const Digest check = Sha256Of(out);
  return out.append(reinterpret_cast<const char*>(check.bytes.data()), check.bytes.size());
}

Result<FolderChunks> FolderChunks::Decode(std::string_view bytes, const std::string& folder) {
  const auto bad = [] { return Fail(ErrorCode::kCorrupt, "the list of chunks is damaged"); };
  if (bytes.size() < kMagic.size() + kDigestBytes || !bytes.starts_with(kMagic)) return bad();
  const std::string_view all = bytes.substr(0, bytes.size() - kDigestBytes);
  if (std::memcmp(Sha256Of(all).bytes.data(), bytes.data() + all.size(), kDigestBytes) != 0) return bad();
  Bytes rest(all.substr(kMagic.size()));
  FolderChunks made;
  made.folder_ = folder;
  const uint64_t files = rest.Number(8);
  if (files > rest.Left() / 4) return bad();
  for (uint64_t i = 0; i < files; ++i) {
    made.files_.emplace_back(rest.Take(rest.Number(4)));
    if (rest.bad() || !IsInside(made.files_.back())) return bad();
  }
  const uint64_t chunks = rest.Number(8);
  if (rest.bad() || chunks != rest.Left() / kSpotBytes || rest.Left() % kSpotBytes != 0) return bad();
  for (uint64_t i = 0; i < chunks; ++i) {
    Digest id;
    std::memcpy(id.bytes.data(), rest.Take(kDigestBytes).data(), kDigestBytes);
    Spot spot;
    spot.file = static_cast<uint32_t>(rest.Number(4));
    spot.size = static_cast<uint32_t>(rest.Number(4));
    spot.offset = static_cast<int64_t>(rest.Number(8));
    if (spot.file >= files || spot.offset < 0) return bad();
    made.spots_.emplace(id, spot);
  }
  return made;
}

Result<void> FolderChunks::OpenFolder() {
  fd_.Reset(open(folder_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd_) return Fail(ErrnoError(errno, StrCat("cannot open ", Quoted(folder_, 300))));
  return {};
}

Fd FolderChunks::Open(const fanout::WantedChunk& chunk, int64_t* offset) const {
  const auto found = spots_.find(chunk.id);
  if (found == spots_.end() || found->second.size != chunk.size || !fd_) return Fd();
  Fd file(OpenBeneath(fd_.Get(), files_[found->second.file].c_str()));
  struct stat info {};
  if (!file || fstat(file.Get(), &info) != 0 || !S_ISREG(info.st_mode) ||
      info.st_size < found->second.offset + chunk.size)
    return Fd();
  *offset = found->second.offset;
  return file;
}

bool FolderChunks::Read(const fanout::WantedChunk& chunk, char* out) const {
  int64_t offset = 0;
  const Fd file = Open(chunk, &offset);
  if (!file) return false;
  for (size_t done = 0; done < chunk.size;) {
    const ssize_t n = pread(file.Get(), out + done, chunk.size - done, offset + static_cast<int64_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<size_t>(n);
  }
  return true;
}

void FolderChunks::Move(const Digest& id, const std::string& path) {
  const auto found = spots_.find(id);
  if (found == spots_.end()) return;
  found->second.file = static_cast<uint32_t>(files_.size());
  found->second.offset = 0;
  files_.push_back(path);
}

}  // namespace overcap
