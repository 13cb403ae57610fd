// SPDX-License-Identifier: Apache-2.0
#include "snapshot/folder_list.h"

#include <algorithm>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <string_view>
#include <sys/stat.h>

#include "sys/fd.h"

namespace overcap {

std::vector<ListedFile> ListFolder(int parent_fd, const std::string& path) {
  std::vector<ListedFile> files;
  Fd fd(openat(parent_fd, path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) return files;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(fdopendir(fd.Get()), closedir);
  if (!folder) return files;
  const int folder_fd = fd.Release();
  while (const dirent* entry = readdir(folder.get())) {
    const std::string_view name = entry->d_name;
    struct stat status;
    if (name == "." || name == "..") continue;
    if (fstatat(folder_fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    files.push_back({std::string(name), int64_t{status.st_size},
                     int64_t{status.st_mtim.tv_sec} * 1'000'000 + status.st_mtim.tv_nsec / 1000});
  }
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return files;
}

}  // namespace overcap
