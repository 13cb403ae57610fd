// SPDX-License-Identifier: Apache-2.0
#include "snapshot/restore/spread_inodes.h"

#include <algorithm>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>

namespace overcap {
namespace {

constexpr int64_t kMany = 2000;  // files

// Whether the mark was set or taken away now.
bool SetMark(int path_fd, bool mark) {
  const Fd fd(openat(path_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  int flags = 0;
  if (!fd || ioctl(fd.Get(), FS_IOC_GETFLAGS, &flags) != 0) return false;
  if (((flags & FS_TOPDIR_FL) != 0) == mark) return false;
  flags ^= FS_TOPDIR_FL;
  return ioctl(fd.Get(), FS_IOC_SETFLAGS, &flags) == 0;
}

}  // namespace

SpreadInodes::SpreadInodes(RestoreScene* scene) : scene_(*scene) {
  const std::vector<EntryState>& states = scene->survey.states;
  active_ = std::count(states.begin(), states.end(), EntryState::kMissing) >= kMany;
  if (active_) Mark(0, scene->target.fd.Get());
}

void SpreadInodes::Made(uint32_t folder, int fd) {
  if (active_ && scene_.tree[folder].parent == 0) Mark(folder, fd);
}

void SpreadInodes::Mark(uint32_t folder, int fd) {
  if (fd >= 0 && SetMark(fd, true)) marked_.push_back(folder);
}

void SpreadInodes::End() {
  FolderFds fds(scene_.tree, scene_.target.fd.Get());
  for (const uint32_t folder : marked_) {
    const int fd = fds.Get(folder);
    if (fd >= 0) (void)SetMark(fd, false);
  }
  marked_.clear();
}

}  // namespace overcap
