// SPDX-License-Identifier: Apache-2.0
#include "snapshot/file_io.h"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "sys/fd.h"

namespace overcap {

ssize_t ReadSome(int fd, char* buffer, size_t size) {
  ssize_t got;
  do {
    got = read(fd, buffer, size);
  } while (got < 0 && errno == EINTR);
  return got;
}

bool WriteWhole(int fd, std::string_view data) {
  while (!data.empty()) {
    const ssize_t put = write(fd, data.data(), data.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return false;
    data.remove_prefix(static_cast<size_t>(put));
  }
  return true;
}

bool ReadToEnd(int fd, size_t expected, std::string* out) {
  out->resize(expected + 1);  // one more, so that the end shows without growing
  size_t have = 0;
  while (true) {
    const ssize_t got = ReadSome(fd, out->data() + have, out->size() - have);
    if (got < 0) return false;
    have += static_cast<size_t>(got);
    if (got == 0) break;
    if (have == out->size()) out->resize(have * 2);
  }
  out->resize(have);
  return true;
}

Result<std::string> ReadFileAt(int folder_fd, const std::string& path) {
  const Fd fd(openat(folder_fd, path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status;
  std::string content;
  if (!fd || fstat(fd.Get(), &status) != 0 ||
      !ReadToEnd(fd.Get(), static_cast<size_t>(status.st_size), &content)) {
    return Fail(ErrnoError(errno, StrCat("cannot read '", path, "'")));
  }
  return content;
}

std::string ReadFileOrNothing(int folder_fd, const std::string& path) {
  Result<std::string> content = ReadFileAt(folder_fd, path);
  return content ? std::move(*content) : std::string();
}

Result<std::string> ReadLinkAt(int folder_fd, const std::string& path) {
  std::string target(4096, '\0');
  const ssize_t size = readlinkat(folder_fd, path.c_str(), target.data(), target.size());
  if (size < 0) return Fail(ErrnoError(errno, StrCat("cannot read the link '", path, "'")));
  target.resize(static_cast<size_t>(size));
  return target;
}

bool RenameNew(int from_fd, const std::string& from, int to_fd, const std::string& to) {
  if (renameat2(from_fd, from.c_str(), to_fd, to.c_str(), RENAME_NOREPLACE) == 0) return true;
  if (errno != EINVAL && errno != ENOSYS) return false;
  // A file system that cannot (NFS): look, then rename. Folders with content are not replaced by rename
  // either.
  struct stat status;
  if (fstatat(to_fd, to.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) {
    errno = EEXIST;
    return false;
  }
  return renameat(from_fd, from.c_str(), to_fd, to.c_str()) == 0;
}

}  // namespace overcap
