// SPDX-License-Identifier: Apache-2.0
#include "sys/fresh_open.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>

namespace overcap {

Fd OpenRetrying(int root, const std::string& path, int flags, mode_t mode) {
  int fd;
  do {
    fd = openat(root, path.c_str(), flags | O_CLOEXEC | O_NOCTTY, mode);
  } while (fd < 0 && errno == EINTR);
  return Fd(fd);
}

bool AskForFolder(int root, const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash);
  if (folder.empty()) return true;  // "/" is here
  if (OpenRetrying(root, folder, O_RDONLY | O_DIRECTORY)) return true;
  if (errno != ENOENT || folder == ".") return errno == EACCES;  // may be entered, not read
  return AskForFolder(root, folder) && OpenRetrying(root, folder, O_RDONLY | O_DIRECTORY);
}

Fd OpenFresh(int root, const std::string& path, int flags) {
  Fd fd = OpenRetrying(root, path, flags);
  if (fd || (errno != ENOENT && errno != ESTALE)) return fd;
  const int error = errno;
  if (AskForFolder(root, path)) return OpenRetrying(root, path, flags);
  errno = error;
  return fd;
}

void AskAnew(int root, const std::string& path) {
  struct stat unused {};
  (void)fstatat(root, path.c_str(), &unused, 0);
}

}  // namespace overcap
