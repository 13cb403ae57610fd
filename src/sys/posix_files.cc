// SPDX-License-Identifier: Apache-2.0
#include "sys/posix_files.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "sys/fd.h"
#include "sys/fresh_open.h"
#include "sys/remove_tree.h"

namespace overcap {
namespace {

constexpr std::string_view kTemporaryPrefix = ".overcap-tmp-";

tl::unexpected<Error> Errno(int error_number, std::string_view what, const std::string& path) {
  return Fail(ErrnoError(error_number, StrCat("cannot ", what, " '", path, "'")));
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

// A name that no other process or thread uses, also when hosts share the folder over NFS (time, then O_EXCL).
std::string TemporaryBeside(const std::string& path) {
  static std::atomic<uint64_t> counter{0};
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return StrCat(FolderOf(path), "/", kTemporaryPrefix, getpid(), "-", now.tv_nsec, "-", counter++);
}

// Makes `temporary` with this content; on failure nothing is left.
Result<void> WriteTemporary(const std::string& temporary, const std::string& path, std::string_view data,
                            bool sync) {
  const Fd fd = OpenRetrying(AT_FDCWD, temporary, O_WRONLY | O_CREAT | O_EXCL, 0600);
  if (!fd) return Errno(errno, "write", path);
  int error = WriteAll(fd.Get(), data);
  if (error == 0 && sync && fsync(fd.Get()) != 0) error = errno;
  if (error == 0) return {};
  unlink(temporary.c_str());
  return Errno(error, "write", path);
}

// Gives `temporary` the name `path` unless that exists. NFS and some FUSE file systems have no
// RENAME_NOREPLACE.
int MoveIfAbsent(const std::string& temporary, const std::string& path) {
  if (renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) == 0) return 0;
  int error = errno;
  if (error == EINVAL || error == ENOSYS) error = link(temporary.c_str(), path.c_str()) == 0 ? 0 : errno;
  unlink(temporary.c_str());
  return error;
}

class PosixAppendFile : public AppendFile {
 public:
  PosixAppendFile(Fd fd, std::string path, int64_t size)
      : fd_(std::move(fd)), path_(std::move(path)), size_(size) {}

  Result<void> Append(std::string_view data) override {
    while (!data.empty()) {
      const ssize_t n = write(fd_.Get(), data.data(), data.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return Errno(errno, "append to", path_);
      size_ += n;
      data.remove_prefix(static_cast<size_t>(n));
    }
    return {};
  }

  Result<void> Sync() override {
    if (fdatasync(fd_.Get()) != 0) return Errno(errno, "sync", path_);
    return {};
  }

  Result<void> TruncateTo(int64_t size) override {
    if (ftruncate(fd_.Get(), size) != 0) return Errno(errno, "truncate", path_);
    size_ = size;
    return {};
  }

  int64_t Size() const override { return size_; }

  Result<bool> Reserve(int64_t bytes) override {
    int error = 0;
    do {
      error = fallocate(fd_.Get(), FALLOC_FL_KEEP_SIZE, size_, bytes) == 0 ? 0 : errno;
    } while (error == EINTR);
    if (error == 0) return true;
    if (error == ENOSPC || error == EDQUOT) return Errno(error, "reserve space for", path_);
    return false;
  }

 private:
  Fd fd_;
  std::string path_;
  int64_t size_;
};

// Reads until `limit` bytes or the end.
// 0 or an errno; `out` holds what is in `path` from `offset` on.
int ReadOnce(const std::string& path, int64_t offset, int64_t limit, std::string* out) {
  const Fd fd =
      OpenFresh(AT_FDCWD, path, O_RDONLY | O_NONBLOCK);  // a pipe in the file's place keeps nobody waiting
  struct stat info {};
  if (!fd || fstat(fd.Get(), &info) != 0) return errno;
  const auto expected = static_cast<size_t>(std::max<int64_t>(0, info.st_size - offset));
  size_t filled = 0;
  out->resize(std::min<size_t>(static_cast<size_t>(limit), expected + 1));
  while (filled < static_cast<size_t>(limit)) {
    if (filled == out->size())
      out->resize(std::min<size_t>(static_cast<size_t>(limit), out->size() * 2 + 4096));
    const ssize_t n =
        pread(fd.Get(), out->data() + filled, out->size() - filled, offset + static_cast<int64_t>(filled));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    if (n == 0) break;
    filled += static_cast<size_t>(n);
  }
  out->resize(filled);
  return 0;
}

}  // namespace

int WriteAll(int fd, std::string_view data) {
  while (!data.empty()) {
    const ssize_t n = write(fd, data.data(), data.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    data.remove_prefix(static_cast<size_t>(n));
  }
  return 0;
}

Result<std::string> PosixFiles::Read(const std::string& path) const {
  return ReadRange(path, 0, INT64_MAX);
}

Result<std::string> PosixFiles::ReadRange(const std::string& path, int64_t offset, int64_t limit) const {
  if (offset < 0 || limit < 0) return Errno(EINVAL, "read", path);
  std::string out;
  int error = ReadOnce(path, offset, limit, &out);
  for (int tries = 0; error == ESTALE && tries < kStaleTries; ++tries) {
    AskAnew(AT_FDCWD, path);
    error = ReadOnce(path, offset, limit, &out);
  }
  if (error != 0) return Errno(error, "read", path);
  return out;
}

Result<std::unique_ptr<AppendFile>> PosixFiles::OpenAppend(const std::string& path) {
  Fd fd = OpenRetrying(AT_FDCWD, path, O_WRONLY | O_APPEND | O_CREAT, 0600);
  struct stat info {};
  if (!fd || fstat(fd.Get(), &info) != 0) return Errno(errno, "open", path);
  return std::unique_ptr<AppendFile>(new PosixAppendFile(std::move(fd), path, info.st_size));
}

Result<void> PosixFiles::WriteAtomic(const std::string& path, std::string_view data, bool durable) {
  const std::string temporary = TemporaryBeside(path);
  OC_TRY_VOID(WriteTemporary(temporary, path, data, durable));
  if (rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    unlink(temporary.c_str());
    return Errno(error, "write", path);
  }
  return durable ? SyncFolder(FolderOf(path)) : Result<void>();
}

Result<void> PosixFiles::CreateExclusive(const std::string& path, std::string_view data) {
  const std::string temporary = TemporaryBeside(path);
  OC_TRY_VOID(WriteTemporary(temporary, path, data, false));
  if (const int error = MoveIfAbsent(temporary, path); error != 0) return Errno(error, "create", path);
  return {};
}

Result<void> PosixFiles::MakeFolders(const std::string& path) {
  if (mkdir(path.c_str(), 0700) == 0) return {};
  if (errno == ENOENT && path.find_last_of('/') != 0 && path.find('/') != std::string::npos) {
    OC_TRY_VOID(MakeFolders(FolderOf(path)));
    if (mkdir(path.c_str(), 0700) == 0) return {};
  }
  const int error = errno;
  struct stat info {};
  if (error == EEXIST && stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) return {};
  return Errno(error == EEXIST ? ENOTDIR : error, "make folder", path);
}

Result<void> PosixFiles::Rename(const std::string& from, const std::string& to) {
  if (rename(from.c_str(), to.c_str()) == 0) return {};
  return Fail(ErrnoError(errno, StrCat("cannot rename '", from, "' to '", to, "'")));
}

Result<void> PosixFiles::SyncFolder(const std::string& path) {
  const Fd fd = OpenRetrying(AT_FDCWD, path, O_RDONLY | O_DIRECTORY);
  if (!fd) return Errno(errno, "sync folder", path);
  // Some file systems (FUSE, CIFS) cannot sync a folder and say EINVAL: there is nothing more to be done
  // there.
  if (fsync(fd.Get()) != 0 && errno != EINVAL) return Errno(errno, "sync folder", path);
  return {};
}

Result<void> PosixFiles::Remove(const std::string& path) {
  if (unlink(path.c_str()) == 0 || errno == ENOENT || errno == ENOTDIR) return {};
  return Errno(errno, "remove", path);
}

Result<void> PosixFiles::RemoveTree(const std::string& path) {
  return overcap::RemoveTree(path);
}

int64_t PosixFiles::FolderChangedUs(const std::string& path) const {
  const auto changed = [](const struct stat& seen) {
    return int64_t{seen.st_mtim.tv_sec} * 1'000'000 + seen.st_mtim.tv_nsec / 1000;
  };
  struct stat seen {};
  if (stat(path.c_str(), &seen) != 0) return 0;
  int64_t latest = changed(seen);
  DIR* folder = opendir(path.c_str());
  if (folder == nullptr) return latest;
  int left = kMostEntriesLookedAt;
  for (const dirent* entry = readdir(folder); entry != nullptr && left > 0; entry = readdir(folder), --left) {
    const bool upwards = std::string_view(entry->d_name) == "..";
    if (!upwards && fstatat(dirfd(folder), entry->d_name, &seen, AT_SYMLINK_NOFOLLOW) == 0)
      latest = std::max(latest, changed(seen));
  }
  closedir(folder);
  return latest;
}

bool PosixFiles::Exists(const std::string& path) const {
  struct stat info {};
  if (lstat(path.c_str(), &info) == 0) return true;
  return errno == ENOENT && AskForFolder(AT_FDCWD, path) && lstat(path.c_str(), &info) == 0;
}

Result<std::vector<std::string>> PosixFiles::List(const std::string& path) const {
  Fd fd = OpenFresh(AT_FDCWD, path, O_RDONLY | O_DIRECTORY);
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(fd ? fdopendir(fd.Get()) : nullptr, closedir);
  if (!folder) return Errno(errno, "list", path);
  (void)fd.Release();
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = readdir(folder.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != ".." && !name.starts_with(kTemporaryPrefix)) names.emplace_back(name);
  }
  if (errno != 0) return Errno(errno, "list", path);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace overcap
