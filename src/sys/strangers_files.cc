// SPDX-License-Identifier: Apache-2.0
#include "sys/strangers_files.h"

#include <algorithm>
#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "sys/open_without_links.h"

namespace overcap {
namespace {

constexpr size_t kMostNames = 100'000;

tl::unexpected<Error> NotThere(const std::string& path) {
  return Fail(ErrorCode::kNotFound, StrCat("there is no file '", path, "' that can be read safely"));
}

tl::unexpected<Error> NotOurs(const std::string& path) {
  return Fail(ErrorCode::kDenied, StrCat("'", path, "' is in a folder of another user"));
}

}  // namespace

std::optional<uid_t> StrangerOf(const std::string& path) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) return std::nullopt;
  if (info.st_uid != geteuid()) return info.st_uid;
  if (!S_ISLNK(info.st_mode) || stat(path.c_str(), &info) != 0 || info.st_uid == geteuid())
    return std::nullopt;
  return info.st_uid;
}

Fd StrangersFiles::Open(const std::string& path, int flags) const {
  const bool inside = path == folder_ || path.starts_with(folder_ + "/");
  const Fd folder(inside ? open(folder_.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1);
  if (!folder) return {};
  return OpenWithoutLinks(folder.Get(), path.substr(std::min(path.size(), folder_.size() + 1)), flags);
}

Result<std::string> StrangersFiles::Read(const std::string& path) const {
  return ReadRange(path, 0, kMostBytes);
}

Result<std::string> StrangersFiles::ReadRange(const std::string& path, int64_t offset, int64_t limit) const {
  const Fd fd = Open(path, O_RDONLY | O_NONBLOCK);
  struct stat info {};
  if (!fd || fstat(fd.Get(), &info) != 0 || !S_ISREG(info.st_mode)) return NotThere(path);
  const int64_t end = std::min<int64_t>(
      {info.st_size, kMostBytes, offset > kMostBytes ? offset : offset + std::min(limit, kMostBytes)});
  std::string bytes(static_cast<size_t>(std::max<int64_t>(0, end - offset)), '\0');
  ssize_t size;
  do {
    size = pread(fd.Get(), bytes.data(), bytes.size(), offset);
  } while (size < 0 && errno == EINTR);
  if (size < 0) return NotThere(path);
  bytes.resize(static_cast<size_t>(size));
  return bytes;
}

bool StrangersFiles::Exists(const std::string& path) const {
  return Open(path, O_PATH).Valid();
}

Result<std::vector<std::string>> StrangersFiles::List(const std::string& path) const {
  Fd fd = Open(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(fd ? fdopendir(fd.Get()) : nullptr, closedir);
  if (!folder) return NotThere(path);
  (void)fd.Release();
  std::vector<std::string> names;
  while (const dirent* entry = readdir(folder.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != ".." && names.size() < kMostNames) names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

int64_t StrangersFiles::ModifiedUs(const std::string& path) const {
  const Fd fd = Open(path, O_PATH);
  struct stat info {};
  if (!fd || fstat(fd.Get(), &info) != 0) return 0;
  return int64_t{info.st_mtim.tv_sec} * 1'000'000 + info.st_mtim.tv_nsec / 1000;
}

Result<std::unique_ptr<AppendFile>> StrangersFiles::OpenAppend(const std::string& path) {
  return NotOurs(path);
}
Result<void> StrangersFiles::WriteAtomic(const std::string& path, std::string_view, bool) {
  return NotOurs(path);
}
Result<void> StrangersFiles::CreateExclusive(const std::string& path, std::string_view) {
  return NotOurs(path);
}
Result<void> StrangersFiles::MakeFolders(const std::string& path) {
  return NotOurs(path);
}
Result<void> StrangersFiles::Rename(const std::string& from, const std::string&) {
  return NotOurs(from);
}
Result<void> StrangersFiles::Remove(const std::string& path) {
  return NotOurs(path);
}
Result<void> StrangersFiles::RemoveTree(const std::string& path) {
  return NotOurs(path);
}

}  // namespace overcap
