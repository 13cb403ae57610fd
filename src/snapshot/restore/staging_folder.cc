// SPDX-License-Identifier: Apache-2.0
#include "snapshot/restore/staging_folder.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utility>

#include "base/text.h"
#include "sys/remove_tree.h"
#include "sys/spread_folders.h"

namespace overcap {
namespace {

constexpr const char* kName = "restoring";
constexpr int kFlags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

}  // namespace

StagingFolder::StagingFolder(int target_fd, std::string keep_name)
    : target_fd_(target_fd), keep_name_(keep_name.empty() ? ".overcap" : std::move(keep_name)) {}

StagingFolder::~StagingFolder() {
  Remove();
}

int StagingFolder::Open() {
  const std::lock_guard lock(mutex_);
  if (fd_) return fd_.Get();
  if (mkdirat(target_fd_, keep_name_.c_str(), 0700) == 0) made_parent_ = changed_target_ = true;
  parent_ = Fd(openat(target_fd_, keep_name_.c_str(), kFlags));
  if (!parent_) return -1;
  if (mkdirat(parent_.Get(), kName, 0700) != 0 && errno != EEXIST) return -1;
  SpreadFolders(parent_.Get(), kName);
  fd_ = Fd(openat(parent_.Get(), kName, kFlags));
  struct stat status;
  const std::string path = StrCat("/proc/self/fd/", fd_.Get());
  hands_down_ = fstat(fd_.Get(), &status) != 0 || (status.st_mode & S_ISGID) != 0 ||
                getxattr(path.c_str(), "system.posix_acl_default", nullptr, 0) > 0;
  return fd_.Get();
}

// ext4 chooses the place of a folder by its name: one that was not there before finds other places than those
// where files were just removed.
std::string StagingFolder::NewLane() {
  const std::string name = StrCat(getpid(), "-", next_.fetch_add(1));
  const int fd = Open();
  return fd >= 0 && mkdirat(fd, name.c_str(), 0700) == 0 ? name + "/" : "";
}

std::string StagingFolder::NewName() {
  return StrCat(".overcap-restoring-", getpid(), "-", next_.fetch_add(1));
}

void StagingFolder::Remove() {
  const std::lock_guard lock(mutex_);
  if (!parent_) parent_ = Fd(openat(target_fd_, keep_name_.c_str(), kFlags));
  fd_.Reset();
  if (parent_) (void)RemoveTree(StrCat("/proc/self/fd/", parent_.Get(), "/", std::string_view(kName)));
  parent_.Reset();
  if (std::exchange(made_parent_, false)) (void)unlinkat(target_fd_, keep_name_.c_str(), AT_REMOVEDIR);
}

}  // namespace overcap
