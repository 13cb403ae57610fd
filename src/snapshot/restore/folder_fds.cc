// SPDX-License-Identifier: Apache-2.0
#include "snapshot/restore/folder_fds.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <linux/openat2.h>
#include <memory>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
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
  const int at_once = chain.size() > 1 ? OpenAtOnce(fd, chain) : -1;
  if (at_once >= 0) {
    last_folder_ = folder;
    return last_fd_ = Keep(folder, at_once);
  }
  for (auto next = chain.rbegin(); next != chain.rend(); ++next) {
    const int below = openat(fd, tree_.Name(*next), kPathFlags);
    if (below < 0) return -1;
    fd = Keep(*next, below);
  }
  last_folder_ = folder;
  return last_fd_ = fd;
}

// Several components with one call, for which the kernel makes sure that none is a link; -1 when that fails
// or cannot be done here: step by step it is told why.
int FolderFds::OpenAtOnce(int fd, const std::vector<uint32_t>& chain) {
  path_.clear();
  for (auto next = chain.rbegin(); next != chain.rend(); ++next) {
    if (!path_.empty()) path_ += '/';
    path_ += tree_.Name(*next);
  }
  struct open_how how {};
  how.flags = kPathFlags;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  return static_cast<int>(syscall(SYS_openat2, fd, path_.c_str(), &how, sizeof how));
}

int FolderFds::Keep(uint32_t folder, int fd) {
  if (open_.size() >= kKept) DropOld();
  Slot& slot = open_[folder];
  slot.fd.Reset(fd);
  slot.used = ++ticks_;
  return fd;
}

// Many at a time: to look for one is as much work as to look for half of them.
void FolderFds::DropOld() {
  std::vector<uint64_t> used;
  for (const auto& [folder, slot] : open_) used.push_back(slot.used);
  const auto middle = used.begin() + static_cast<std::ptrdiff_t>(used.size() / 2);
  std::nth_element(used.begin(), middle, used.end());
  std::erase_if(open_, [&](const auto& slot) { return slot.second.used < *middle; });
  if (!open_.contains(last_folder_)) last_folder_ = kNoEntry;
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
