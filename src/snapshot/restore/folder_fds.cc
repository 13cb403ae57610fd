// SPDX-License-Identifier: Apache-2.0
#include "snapshot/restore/folder_fds.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <memory>
#include <sys/stat.h>
#include <vector>

#include "base/text.h"

namespace overcap {
namespace {

constexpr int kPathFlags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

int MakeFolders(const std::string& path) {
  if (mkdir(path.c_str(), 0777) == 0) return 0;
  const size_t slash = path.find_last_of('/');
  if (errno != ENOENT || slash == path.npos || slash == 0) return errno;
  const int error = MakeFolders(path.substr(0, slash));
  if (error != 0 && error != EEXIST) return error;
  return mkdir(path.c_str(), 0777) == 0 ? 0 : errno;
}

}  // namespace

Result<TargetFolder> TargetFolder::Open(const std::string& path, bool make) {
  if (!path.starts_with('/')) {
    return Fail(ErrorCode::kUsage, StrCat("the folder ", Quoted(path, 200), " is not an absolute path"));
  }
  TargetFolder target;
  // The way to the target is the user's own: links are followed there.
  target.fd = Fd(open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!target.fd && errno == ENOENT && make) {
    const int error = MakeFolders(path);
    if (error != 0 && error != EEXIST) return Fail(ErrnoError(error, StrCat("cannot make '", path, "'")));
    target.made = error == 0;
    target.fd = Fd(open(path.c_str(), O_PATH | O_CLOEXEC));
  }
  if (!target.fd) return Fail(ErrnoError(errno, StrCat("cannot open the folder '", path, "'")));
  struct stat status;
  if (fstat(target.fd.Get(), &status) != 0 || !S_ISDIR(status.st_mode)) {
    return Fail(ErrorCode::kConflict, StrCat("'", path, "' is not a folder"));
  }
  const std::unique_ptr<char, void (*)(void*)> real(realpath(path.c_str(), nullptr), free);
  target.path = real ? real.get() : path;
  return target;
}

int FolderFds::Find(uint32_t folder) {
  if (folder == 0) return root_fd_;
  const auto found = open_.find(folder);
  if (found != open_.end()) {
    found->second.used = ++ticks_;
    last_folder_ = folder;
    return last_fd_ = found->second.fd.Get();
  }
  std::vector<uint32_t> chain;
  uint32_t at = folder;
  for (; at != 0 && open_.find(at) == open_.end(); at = tree_[at].parent) chain.push_back(at);
  int fd = at == 0 ? root_fd_ : open_[at].fd.Get();
  if (at != 0) open_[at].used = ++ticks_;
  for (auto next = chain.rbegin(); next != chain.rend(); ++next) {
    const int below = openat(fd, tree_.Name(*next), kPathFlags);
    if (below < 0) return -1;
    fd = Keep(*next, below);
  }
  last_folder_ = folder;
  return last_fd_ = fd;
}

int FolderFds::Keep(uint32_t folder, int fd) {
  if (open_.size() >= kKept) DropOldest();
  Slot& slot = open_[folder];
  slot.fd.Reset(fd);
  slot.used = ++ticks_;
  return fd;
}

void FolderFds::DropOldest() {
  const auto oldest = std::min_element(
      open_.begin(), open_.end(), [](const auto& a, const auto& b) { return a.second.used < b.second.used; });
  if (oldest->first == last_folder_) last_folder_ = kNoEntry;
  open_.erase(oldest);
}

Fd OpenFolderToRead(int parent_fd, const char* name, bool may_chmod) {
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  Fd fd(openat(parent_fd, name, kFlags));
  if (fd || errno != EACCES || !may_chmod) return fd;
  const Fd path_fd(openat(parent_fd, name, kPathFlags));
  struct stat status;
  if (!path_fd || fstat(path_fd.Get(), &status) != 0 ||
      ChmodPathFd(path_fd.Get(), (status.st_mode & 07777) | 0700) != 0) {
    return Fd();
  }
  return Fd(openat(parent_fd, name, kFlags));
}

int ChmodPathFd(int fd, unsigned mode) {
  return chmod(StrCat("/proc/self/fd/", fd).c_str(), mode);
}

}  // namespace overcap
