// SPDX-License-Identifier: Apache-2.0
#include "sys/as_user.h"

#include <cstdlib>
#include <sys/fsuid.h>

#include "base/text.h"

namespace overcap {
namespace {

// The calls say nothing about their success but what was before; an id that nobody has only asks.
constexpr auto kNobodyUid = static_cast<uid_t>(-1);
constexpr auto kNobodyGid = static_cast<gid_t>(-1);

bool SetIds(uid_t uid, gid_t gid) {
  setfsgid(gid);
  setfsuid(uid);
  return static_cast<uid_t>(setfsuid(kNobodyUid)) == uid && static_cast<gid_t>(setfsgid(kNobodyGid)) == gid;
}

}  // namespace

Result<AsUser> AsUser::Become(uid_t uid, gid_t gid) {
  const auto old_uid = static_cast<uid_t>(setfsuid(kNobodyUid));
  const auto old_gid = static_cast<gid_t>(setfsgid(kNobodyGid));
  if (uid != kNobodyUid && gid != kNobodyGid && SetIds(uid, gid)) return AsUser(old_uid, old_gid);
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
  if (!SetIds(old_uid_, old_gid_)) std::abort();
}

}  // namespace overcap
