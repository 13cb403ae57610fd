// SPDX-License-Identifier: Apache-2.0
#include "snapshot/restore/attributes.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <string_view>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/text.h"
#include "snapshot/file_io.h"

namespace overcap {
namespace {

constexpr const char* kAccessAcl = "system.posix_acl_access";
constexpr const char* kDefaultAcl = "system.posix_acl_default";

// The process's umask without changing it for a moment, as another thread may make a file.
uint32_t OwnUmask() {
  const std::string status = ReadFileOrNothing(AT_FDCWD, "/proc/self/status");
  const size_t at = status.find("\nUmask:");
  return at == status.npos ? 077 : static_cast<uint32_t>(strtoul(status.c_str() + at + 7, nullptr, 8));
}

bool NotSupported(int error) {
  return error == ENOTSUP || error == ENOSYS;
}

using ListCall = std::function<ssize_t(char*, size_t)>;
using GetCall = std::function<ssize_t(const char*, char*, size_t)>;

// Calls until the answer fits. False with errno.
bool Whole(std::string* out, const std::function<ssize_t(char*, size_t)>& call) {
  for (size_t size = 256;; size *= 4) {
    out->resize(size);
    const ssize_t got = call(out->data(), size);
    if (got >= 0) out->resize(static_cast<size_t>(got));
    if (got >= 0) return true;
    if (errno != ERANGE || size > (1 << 24)) return false;
  }
}

FoundXattrs Read(const ListCall& list, const GetCall& get, const AttributeRules& rules) {
  FoundXattrs found;
  std::string names;
  if (!Whole(&names, list)) {
    if (!NotSupported(errno)) found.error = errno;
    return found;
  }
  for (size_t at = 0; at < names.size(); at += strlen(names.c_str() + at) + 1) {
    ExtendedAttribute one{names.c_str() + at, ""};
    if (!rules.Restores(one.name)) continue;
    const auto get_one = [&](char* out, size_t size) { return get(one.name.c_str(), out, size); };
    if (Whole(&one.value, get_one)) {
      found.list.push_back(std::move(one));
    } else if (errno != ENODATA) {
      found.error = errno;
    }
  }
  std::sort(found.list.begin(), found.list.end(),
            [](const ExtendedAttribute& a, const ExtendedAttribute& b) { return a.name < b.name; });
  return found;
}

int SetWanted(int fd, const std::vector<ExtendedAttribute>& xattrs, const AttributeRules& rules) {
  for (const ExtendedAttribute& one : xattrs) {
    if (!rules.Restores(one.name)) continue;
    if (fsetxattr(fd, one.name.c_str(), one.value.data(), one.value.size(), 0) != 0) return errno;
  }
  return 0;
}

int RemoveOthers(int fd, const std::vector<ExtendedAttribute>& xattrs, const AttributeRules& rules) {
  const FoundXattrs found = ReadXattrs(fd, rules);
  for (const ExtendedAttribute& one : found.list) {
    const bool wanted =
        std::any_of(xattrs.begin(), xattrs.end(), [&](const auto& x) { return x.name == one.name; });
    if (!wanted && fremovexattr(fd, one.name.c_str()) != 0 && errno != ENODATA) return errno;
  }
  return found.error;
}

// What a folder above handed down and the entry does not have.
void RemoveInherited(int fd, const std::vector<ExtendedAttribute>& xattrs) {
  for (const char* name : {kAccessAcl, kDefaultAcl}) {
    const bool wanted =
        std::any_of(xattrs.begin(), xattrs.end(), [&](const auto& x) { return x.name == name; });
    if (!wanted) (void)fremovexattr(fd, name);
  }
}

}  // namespace

AttributeRules AttributeRules::OfThisProcess(bool owners) {
  return {owners, geteuid() == 0, geteuid(), getegid(), OwnUmask()};
}

bool AttributeRules::Restores(const std::string& name) const {
  return root || name.starts_with("user.") || name.starts_with("system.posix_acl_");
}

FoundXattrs ReadXattrs(int fd, const AttributeRules& rules) {
  return Read([&](char* out, size_t size) { return flistxattr(fd, out, size); },
              [&](const char* name, char* out, size_t size) { return fgetxattr(fd, name, out, size); },
              rules);
}

FoundXattrs ReadXattrsAt(int folder_fd, const char* name, const AttributeRules& rules) {
  const std::string path = StrCat("/proc/self/fd/", folder_fd, "/", std::string_view(name));
  return Read(
      [&](char* out, size_t size) { return llistxattr(path.c_str(), out, size); },
      [&](const char* key, char* out, size_t size) { return lgetxattr(path.c_str(), key, out, size); },
      rules);
}

std::vector<ExtendedAttribute> RestoredXattrs(const std::vector<ExtendedAttribute>& wanted,
                                              const AttributeRules& rules) {
  std::vector<ExtendedAttribute> restored;
  for (const ExtendedAttribute& one : wanted) {
    if (rules.Restores(one.name)) restored.push_back(one);
  }
  return restored;
}

int SetAttributes(int fd, const WantedEntry& entry, const std::vector<ExtendedAttribute>& xattrs,
                  const AttributeRules& rules, AttributesOn on) {
  const bool fresh = on == AttributesOn::kNew;
  const bool owner = rules.NeedsOwner(entry, fresh);
  if (owner && fchown(fd, entry.uid, entry.gid) != 0) return errno;
  if (!fresh || (rules.CreateMode(entry) & ~rules.umask) != entry.mode) {
    if (fchmod(fd, entry.mode) != 0) return errno;
  }
  if (on == AttributesOn::kInherited) RemoveInherited(fd, xattrs);
  if (on == AttributesOn::kOld) {
    if (const int error = RemoveOthers(fd, xattrs, rules); error != 0) return error;
  }
  if (const int error = SetWanted(fd, xattrs, rules); error != 0) return error;
  const struct timespec times[2] = {{0, UTIME_OMIT}, TimeOf(entry.mtime_ns)};
  return futimens(fd, times) == 0 ? 0 : errno;
}

int SetLinkAttributes(int folder_fd, const char* name, const WantedEntry& entry,
                      const std::vector<ExtendedAttribute>& xattrs, const AttributeRules& rules) {
  if (rules.owners && fchownat(folder_fd, name, entry.uid, entry.gid, AT_SYMLINK_NOFOLLOW) != 0) return errno;
  for (const ExtendedAttribute& one : xattrs) {
    if (!rules.Restores(one.name)) continue;
    const std::string path = StrCat("/proc/self/fd/", folder_fd, "/", std::string_view(name));
    if (lsetxattr(path.c_str(), one.name.c_str(), one.value.data(), one.value.size(), 0) != 0) return errno;
  }
  const struct timespec times[2] = {{0, UTIME_OMIT}, TimeOf(entry.mtime_ns)};
  return utimensat(folder_fd, name, times, AT_SYMLINK_NOFOLLOW) == 0 ? 0 : errno;
}

struct timespec TimeOf(int64_t ns) {
  constexpr int64_t kSecond = 1'000'000'000;
  int64_t seconds = ns / kSecond, rest = ns % kSecond;
  if (rest < 0) --seconds, rest += kSecond;
  return {seconds, rest};
}

}  // namespace overcap
