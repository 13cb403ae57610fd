// SPDX-License-Identifier: Apache-2.0
#include "snapshot/backup/long_path.h"

#include <algorithm>
#include <cstdint>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string>
#include <sys/syscall.h>

namespace overcap {
namespace {

constexpr size_t kAtOnce = 3500;  // bytes; PATH_MAX is 4096

// One component after the other, for kernels that have no openat2.
Fd OpenByComponents(int folder_fd, std::string_view path, int flags) {
  Fd at;
  while (true) {
    const size_t end = std::min(path.find('/'), path.size());
    const bool last = end == path.size();
    const int step = last ? flags : O_PATH | O_DIRECTORY | O_CLOEXEC;
    at.Reset(openat(at ? at.Get() : folder_fd, std::string(path.substr(0, end)).c_str(), step | O_NOFOLLOW));
    if (!at || last) return at;
    path.remove_prefix(end + 1);
  }
}

Fd OpenPiece(int folder_fd, std::string_view path, int flags) {
  struct open_how how {};
  how.flags = static_cast<uint64_t>(flags | O_NOFOLLOW);
  how.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_BENEATH;
  Fd fd(static_cast<int>(syscall(SYS_openat2, folder_fd, std::string(path).c_str(), &how, sizeof how)));
  if (fd || (errno != ENOSYS && errno != EPERM && errno != EAGAIN)) return fd;
  return OpenByComponents(folder_fd, path, flags);
}

}  // namespace

Fd OpenBelow(int root_fd, std::string_view path, int flags) {
  if (path.empty()) return Fd(openat(root_fd, ".", flags));
  Fd at;
  while (path.size() > kAtOnce) {
    const size_t cut = path.rfind('/', kAtOnce);
    if (cut == std::string_view::npos) break;
    at = OpenPiece(at ? at.Get() : root_fd, path.substr(0, cut), O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (!at) return at;
    path.remove_prefix(cut + 1);
  }
  return OpenPiece(at ? at.Get() : root_fd, path, flags);
}

}  // namespace overcap
