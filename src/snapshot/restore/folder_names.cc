// SPDX-License-Identifier: Apache-2.0
#include "snapshot/restore/folder_names.h"

#include <algorithm>
#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <string_view>
#include <sys/stat.h>

#include "snapshot/restore/folder_fds.h"

namespace overcap {
namespace {

bool IsFolder(int fd, const dirent& entry) {
  if (entry.d_type != DT_UNKNOWN) return entry.d_type == DT_DIR;
  struct stat status;
  return fstatat(fd, entry.d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode);
}

}  // namespace

bool ListNames(int folder_fd, bool may_chmod, std::vector<ListedName>* names) {
  Fd fd = OpenFolderToRead(folder_fd, ".", may_chmod);
  if (!fd) return false;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(fdopendir(fd.Get()), closedir);
  if (!folder) return false;
  fd.Release();
  errno = 0;
  while (const dirent* entry = readdir(folder.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names->push_back({std::string(name), IsFolder(folder_fd, *entry)});
    errno = 0;
  }
  if (errno != 0) return false;
  std::sort(names->begin(), names->end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return true;
}

}  // namespace overcap
