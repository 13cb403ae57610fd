// SPDX-License-Identifier: Apache-2.0
#include "sys/fresh_open.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

namespace overcap {
namespace {

bool KeepsCaches(const struct statfs& info) {
  constexpr std::array<uint32_t, 4> kKinds = {0x6969, 0x517B, 0xFF534D42,
                                              0xFE534D42};  // NFS, SMB, CIFS, SMB2
  return std::find(kKinds.begin(), kKinds.end(), static_cast<uint32_t>(info.f_type)) != kKinds.end();
}

}  // namespace

bool HostsKeepCaches(int fd) {
  struct statfs info {};
  return fstatfs(fd, &info) == 0 && KeepsCaches(info);
}

bool HostsKeepCaches(const std::string& path) {
  struct statfs info {};
  return statfs(path.c_str(), &info) == 0 && KeepsCaches(info);
}

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
