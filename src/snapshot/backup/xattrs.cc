// SPDX-License-Identifier: Apache-2.0
#include "snapshot/backup/xattrs.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <sys/xattr.h>
#include <vector>

#include "base/text.h"
#include "snapshot/backup/seen.h"

namespace overcap {
namespace {

constexpr size_t kMost = 65536;  // of a list or a value: the kernel's own limit

// One thing that has attributes: by descriptor, or by path.
struct Bearer {
  int fd;
  const char* path;

  ssize_t List(char* list, size_t size) const {
    return path != nullptr ? llistxattr(path, list, size) : flistxattr(fd, list, size);
  }
  ssize_t Get(const char* name, char* value, size_t size) const {
    return path != nullptr ? lgetxattr(path, name, value, size) : fgetxattr(fd, name, value, size);
  }
};

std::string Read(const Bearer& bearer) {
  std::array<char, 1024> small;
  std::string large;
  char* list = small.data();
  ssize_t size = bearer.List(list, small.size());
  if (size < 0 && errno == ERANGE) {
    large.resize(kMost);
    list = large.data();
    size = bearer.List(list, large.size());
  }
  if (size <= 0) return {};

  std::vector<ExtendedAttribute> xattrs;
  std::string value(kMost, '\0');
  for (const char* name = list; name < list + size; name += std::string_view(name).size() + 1) {
    if (!KeepsXattr(name)) continue;
    const ssize_t length = bearer.Get(name, value.data(), value.size());
    if (length >= 0) xattrs.push_back({name, value.substr(0, static_cast<size_t>(length))});
  }
  std::sort(xattrs.begin(), xattrs.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return EncodeXattrs(xattrs);
}

}  // namespace

bool KeepsXattr(std::string_view name) {
  if (name.starts_with("user.")) return true;
  if (name.starts_with("trusted.")) return !name.starts_with("trusted.overlay.");
  return name == "system.posix_acl_access" || name == "system.posix_acl_default" ||
         name == "security.capability";
}

std::string ReadXattrs(int fd) {
  return Read({fd, nullptr});
}

std::string ReadXattrsAt(int folder_fd, const char* name) {
  const std::string path = StrCat("/proc/self/fd/", folder_fd, "/", name);
  return Read({-1, path.c_str()});
}

}  // namespace overcap
