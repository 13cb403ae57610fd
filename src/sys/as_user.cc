// SPDX-License-Identifier: Apache-2.0
#include "sys/as_user.h"

#include <cstdlib>
#include <linux/capability.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/text.h"

namespace overcap {
namespace {

// The calls say nothing about their success but what was before; an id that nobody has only asks.
constexpr auto kNobodyUid = static_cast<uid_t>(-1);
constexpr auto kNobodyGid = static_cast<gid_t>(-1);

// A thread with CAP_SYS_RESOURCE ignores quotas and may use the blocks that a file system reserves for root.
// False: the kernel refused.
bool SetResourceRight(bool on) {
  constexpr uint32_t kBit = uint32_t{1} << CAP_SYS_RESOURCE;
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  if (syscall(SYS_capget, &header, data) != 0) return false;
  const uint32_t wanted = on ? data[0].effective | (data[0].permitted & kBit) : data[0].effective & ~kBit;
  if (wanted == data[0].effective) return true;
  data[0].effective = wanted;
  return syscall(SYS_capset, &header, data) == 0;
}

bool SetIds(uid_t uid, gid_t gid) {
  setfsgid(gid);
  setfsuid(uid);
  return static_cast<uid_t>(setfsuid(kNobodyUid)) == uid && static_cast<gid_t>(setfsgid(kNobodyGid)) == gid;
}

}  // namespace

Result<AsUser> AsUser::Become(uid_t uid, gid_t gid) {
  const auto old_uid = static_cast<uid_t>(setfsuid(kNobodyUid));
  const auto old_gid = static_cast<gid_t>(setfsgid(kNobodyGid));
  const bool other = uid != old_uid;
  if (uid != kNobodyUid && gid != kNobodyGid && (!other || SetResourceRight(false)) && SetIds(uid, gid))
    return AsUser(old_uid, old_gid);
  if (other) (void)SetResourceRight(true);
  if (!SetIds(old_uid, old_gid)) std::abort();
  return Fail(ErrorCode::kDenied, StrCat("cannot act as user ", uid));
}

AsUser::AsUser(AsUser&& other) noexcept
    : old_uid_(other.old_uid_), old_gid_(other.old_gid_), active_(other.active_) {
  other.active_ = false;
}

AsUser::~AsUser() {
  if (!active_) return;
  // The user first: root may set any group, others may not.
  setfsuid(old_uid_);
  if (!SetIds(old_uid_, old_gid_) || !SetResourceRight(true)) std::abort();
}

}  // namespace overcap
