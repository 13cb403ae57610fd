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

unsigned char KindOf(int fd, const dirent& entry) {
  if (entry.d_type != DT_UNKNOWN) return entry.d_type;
  struct stat status;
  if (fstatat(fd, entry.d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) return DT_UNKNOWN;
  return static_cast<unsigned char>(IFTODT(status.st_mode));
}

bool IsSpecial(unsigned char kind) {
  return kind == DT_FIFO || kind == DT_SOCK || kind == DT_CHR || kind == DT_BLK;
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
    if (name != "." && name != "..") {
      const unsigned char kind = KindOf(folder_fd, *entry);
      names->push_back({std::string(name), kind == DT_DIR, IsSpecial(kind)});
    }
    errno = 0;
  }
  if (errno != 0) return false;
  std::sort(names->begin(), names->end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return true;
}

}  // namespace overcap
