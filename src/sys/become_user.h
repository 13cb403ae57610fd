// SPDX-License-Identifier: Apache-2.0
// The step from root to a user, for good, in a process that has one thread and runs a program of that user
// next (docs/formats/system-engine.md). In this order: LeaveRootBehind, SetUsersGroups, then what only root
// can do, SetUser.
#pragma once

#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "base/result.h"
#include "sys/user.h"

namespace overcap {

// Nothing of root's may follow: descriptors above 2, keys, a place in the kernel's order of victims,
// capabilities that an exec would keep.
void LeaveRootBehind();

// The groups that the machine's lists name now; `groups` for a user whom they do not know.
std::optional<Error> SetUsersGroups(const std::optional<UserEntry>& user, const std::vector<gid_t>& groups);

// All ids of the process. An error also when anything of root's rights is left: the caller ends at once.
std::optional<Error> SetUser(uid_t uid, gid_t gid);

// The number of the user of that name; a number as text is its own. nullopt: the machine's list has no such
// user.
std::optional<uid_t> UserNumber(const std::string& name);

}  // namespace overcap
