// SPDX-License-Identifier: Apache-2.0
#include "sys/remove_tree.h"

#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "sys/fd.h"

namespace overcap {
namespace {

using Folder = std::unique_ptr<DIR, int (*)(DIR*)>;

// Keeps the first failure with its path.
struct Failure {
  int error = 0;
  std::string path;
  void Note(int number, const std::string& where) {
    if (error == 0) error = number, path = where;
  }
};

int OpenFolderAt(int parent, const char* name) {
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  const int fd = openat(parent, name, kFlags);
  if (fd >= 0 || errno != EACCES) return fd;
  if (fchmodat(parent, name, 0700, 0) != 0) return -1;
  return openat(parent, name, kFlags);
}

void RemoveAt(int parent, const char* name, const std::string& path, Failure* failure);

void RemoveContent(int fd, const std::string& path, Failure* failure) {
  fchmod(fd, 0700);  // a folder without w or x cannot be emptied; not ours: the unlink below says so
  const Folder folder(fdopendir(fd), closedir);
  if (!folder) {
    failure->Note(errno, path);
    close(fd);
    return;
  }
  while (const dirent* entry = readdir(folder.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") RemoveAt(fd, entry->d_name, StrCat(path, "/", name), failure);
  }
}

void RemoveAt(int parent, const char* name, const std::string& path, Failure* failure) {
  if (unlinkat(parent, name, 0) == 0 || errno == ENOENT) return;
  const int unlink_error = errno;
  const int fd = unlink_error == EISDIR || unlink_error == EPERM ? OpenFolderAt(parent, name) : -1;
  if (fd < 0) {
    if (errno != ENOENT) failure->Note(unlink_error == EISDIR ? errno : unlink_error, path);
    return;
  }
  RemoveContent(fd, path, failure);
  if (unlinkat(parent, name, AT_REMOVEDIR) != 0 && errno != ENOENT) failure->Note(errno, path);
}

}  // namespace

Result<void> RemoveTree(const std::string& path) {
  Failure failure;
  RemoveAt(AT_FDCWD, path.c_str(), path, &failure);
  if (failure.error == 0 || failure.error == ENOTDIR) return {};
  return Fail(ErrnoError(failure.error, StrCat("cannot remove '", failure.path, "'")));
}

}  // namespace overcap
