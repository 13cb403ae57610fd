// SPDX-License-Identifier: Apache-2.0
#include "snapshot/restore/leftovers.h"

#include <algorithm>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <unordered_map>
#include <unordered_set>

#include "snapshot/file_io.h"
#include "snapshot/repository/chunk_index.h"
#include "snapshot/repository/chunk_reader.h"
#include "snapshot/restore/content_cursor.h"

namespace overcap {
namespace {

constexpr int64_t kLeftoverBuffer = 1 << 20;

}  // namespace

bool Leftovers::Has(uint32_t entry) {
  const WantedEntry& wanted = tree_[entry];
  const int folder = fds_.Get(wanted.parent);
  const char* name = tree_.Name(entry);
  struct stat status;
  if (folder < 0 || fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) != 0) return false;
  if (wanted.IsFolder()) return S_ISDIR(status.st_mode);
  if (wanted.IsSymlink()) {
    const Result<std::string> target = ReadLinkAt(folder, name);
    return target && *target == tree_.Target(entry);
  }
  const uint32_t file = wanted.IsHardLink() ? wanted.link : entry;
  if (!S_ISREG(status.st_mode) || status.st_size > tree_[file].size) return false;
  const Fd fd(openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  return fd && HasFile(fd.Get(), file);
}

bool Leftovers::HasFile(int fd, uint32_t file) {
  struct stat status;
  if (fstat(fd, &status) != 0) return false;
  ContentCursor cursor(tree_[file], get_);
  while (true) {
    const Result<std::optional<PlacedPart>> next = cursor.Next();
    if (!next) return false;
    if (!*next) return true;
    const PlacedPart& placed = **next;
    std::string bytes;
    if (placed.part.kind == ContentPart::Kind::kChunk) {
      Result<std::string> chunk = get_(placed.part.id);
      if (!chunk) return false;
      bytes = *std::move(chunk);
    }
    if (!HasPart(fd, status.st_size, placed.offset, placed.part.length, bytes)) return false;
  }
}

// `bytes` is empty for a hole.
bool Leftovers::HasPart(int fd, int64_t size, int64_t offset, int64_t length, const std::string& bytes) {
  buffer_.resize(kLeftoverBuffer);
  const int64_t end = std::min(size, offset + length);
  for (int64_t at = offset; at < end;) {
    const ssize_t got =
        pread(fd, buffer_.data(), static_cast<size_t>(std::min(kLeftoverBuffer, end - at)), at);
    if (got <= 0) return false;
    for (ssize_t i = 0; i < got; ++i) {
      const auto place = static_cast<size_t>(at - offset + i);
      const char wanted = place < bytes.size() ? bytes[place] : '\0';
      const char found = buffer_[static_cast<size_t>(i)];
      if (found != '\0' && found != wanted) return false;
    }
    at += got;
  }
  return true;
}

Result<void> EraseLeftovers(const Repository& repository, const Digest& tree, const std::string& folder,
                            std::vector<FolderDifference>* differences) {
  if (differences->empty()) return {};
  OC_TRY(index, ChunkIndex::Load(repository));
  ChunkReader reader(repository, index);
  const GetMeta get = [&reader](const Digest& id) { return reader.Get(id); };
  OC_TRY(wanted, WantedTree::Load(tree, {{}, ".overcap", true}, get));
  OC_TRY(target, TargetFolder::Open(folder, false));
  std::unordered_set<std::string_view> asked;
  for (const FolderDifference& difference : *differences) asked.insert(difference.path);
  std::unordered_set<std::string> left;
  Leftovers leftovers(wanted, target, get);
  for (uint32_t entry = 1; entry < wanted.size(); ++entry) {
    std::string path = wanted.Path(entry);
    if (asked.contains(path) && leftovers.Has(entry)) left.insert(std::move(path));
  }
  std::erase_if(*differences,
                [&](const FolderDifference& difference) { return left.contains(difference.path); });
  return {};
}

}  // namespace overcap
