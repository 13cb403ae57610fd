// SPDX-License-Identifier: Apache-2.0
#include "sys/open_without_links.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/text.h"
#include "sys/fresh_open.h"

namespace overcap {

namespace {

// In one call, where the kernel can: since 5.6.
Fd OpenAtOnce(int root, const std::string& path, int flags) {
  open_how how{};
  how.flags = static_cast<uint64_t>(flags | O_CLOEXEC | ((flags & O_PATH) != 0 ? 0 : O_NOCTTY));
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  return Fd(static_cast<int>(syscall(SYS_openat2, root, path.c_str(), &how, sizeof how)));
}

// Each part is looked for in the folder that is open.
Fd OpenPartByPart(int root, const std::vector<std::string>& parts, int flags) {
  Fd folder;
  for (size_t i = 0; i < parts.size(); ++i) {
    const bool last = i + 1 == parts.size();
    Fd next = OpenRetrying(folder ? folder.Get() : root, parts[i],
                           (last ? flags : O_PATH | O_DIRECTORY) | O_NOFOLLOW);
    if (!next) return next;
    folder = std::move(next);
  }
  return folder;
}

}  // namespace

Fd OpenWithoutLinks(int root, const std::string& path, int flags) {
  std::vector<std::string> parts = Split(path, '/');
  std::erase_if(parts, [](const std::string& part) { return part.empty() || part == "."; });
  if (parts.empty()) return OpenRetrying(root, ".", flags);
  if (std::find(parts.begin(), parts.end(), "..") != parts.end()) {
    errno = ENOTDIR;
    return {};
  }
  Fd fd = OpenAtOnce(root, Join(parts, "/"), flags | O_NOFOLLOW);
  if (fd || errno == ENOENT || errno == ENOTDIR || errno == EACCES || errno == ESTALE) return fd;
  return OpenPartByPart(root, parts, flags);
}

}  // namespace overcap
