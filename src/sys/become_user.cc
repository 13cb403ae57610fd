// SPDX-License-Identifier: Apache-2.0
#include "sys/become_user.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/text.h"
#include "sys/fd.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

Error Failed(std::string_view what) {
  return ErrnoError(errno, StrCat("cannot ", what));
}

bool HasCapabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  if (syscall(SYS_capget, &header, data) != 0) return true;
  return (data[0].permitted | data[1].permitted | data[0].effective | data[1].effective) != 0;
}

void ClearInheritable() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  if (syscall(SYS_capget, &header, data) != 0) return;
  data[0].inheritable = data[1].inheritable = 0;
  (void)syscall(SYS_capset, &header, data);
}

}  // namespace

void LeaveRootBehind() {
  close_range(3, UINT_MAX, 0);
  (void)syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr);
  const Fd oom(open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
  if (oom) (void)WriteAll(oom.Get(), "0");
  (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  ClearInheritable();
}

std::optional<Error> SetUsersGroups(const std::optional<UserEntry>& user, const std::vector<gid_t>& groups) {
  const int set = user ? initgroups(user->name.c_str(), user->gid) : setgroups(groups.size(), groups.data());
  return set == 0 ? std::nullopt : std::optional(Failed("set the groups"));
}

std::optional<Error> SetUser(uid_t uid, gid_t gid) {
  if (setresgid(gid, gid, gid) != 0) return Failed("set the group");
  if (setresuid(uid, uid, uid) != 0) return Failed("set the user");
  uid_t real = 0, effective = 0, saved = 0;
  if (getresuid(&real, &effective, &saved) != 0 || real != uid || effective != uid || saved != uid)
    return Error{ErrorCode::kInternal, "the kernel has not set the user", ""};
  if (uid != 0 && (setuid(0) == 0 || HasCapabilities()))
    return Error{ErrorCode::kInternal, "root's rights could not be left behind", ""};
  return std::nullopt;
}

std::optional<uid_t> UserNumber(const std::string& name) {
  std::vector<char> buffer(16 << 10);
  passwd entry{};
  passwd* found = nullptr;
  int error = 0;
  while ((error = getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found)) == ERANGE)
    buffer.resize(buffer.size() * 2);
  if (error == 0 && found != nullptr) return entry.pw_uid;
  const auto number = ParseInt(name);
  if (number && *number >= 0 && *number < UINT32_MAX) return static_cast<uid_t>(*number);
  return std::nullopt;
}

}  // namespace overcap
