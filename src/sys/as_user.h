// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include "base/result.h"

namespace overcap {

// While it lives, this thread's file system ids are those of the user, and root's rights over files are gone:
// what the user may not open, it may not either, and the user's quota holds. Supplementary groups
// stay: a process that serves other users must have none.
class AsUser {
 public:
  // kDenied when the kernel does not let us; then nothing has changed.
  static Result<AsUser> Become(uid_t uid, gid_t gid);
  AsUser(AsUser&& other) noexcept;
  AsUser(const AsUser&) = delete;
  AsUser& operator=(const AsUser&) = delete;
  AsUser& operator=(AsUser&&) = delete;
  ~AsUser();  // ends the process when it cannot go back: nothing may go on as a mixture of two users

 private:
  AsUser(uid_t old_uid, gid_t old_gid) : old_uid_(old_uid), old_gid_(old_gid) {}

  uid_t old_uid_;
  gid_t old_gid_;
  bool active_ = true;
};

}  // namespace overcap
