// SPDX-License-Identifier: Apache-2.0
#include "sys/spread_folders.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>

#include "sys/fd.h"

namespace overcap {

void SpreadFolders(int folder_fd, const char* name) {
  const Fd fd(openat(folder_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  int flags = 0;
  if (!fd || ioctl(fd.Get(), FS_IOC_GETFLAGS, &flags) != 0) return;
  flags |= FS_TOPDIR_FL;
  (void)ioctl(fd.Get(), FS_IOC_SETFLAGS, &flags);
}

}  // namespace overcap
