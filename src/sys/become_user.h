// SPDX-License-Identifier: Apache-2.0
// Turns a process of root's into a process of another user for good (docs/formats/system-engine.md). The
// process must have one thread. The order of calls: LeaveRootBehind, SetUsersGroups, whatever only root can
// do, SetUser.
#pragma once

#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "base/result.h"
#include "sys/user.h"

namespace overcap {

// Drops what a user must not inherit from root: descriptors above 2, keys, the OOM score, and capabilities
// that survive an exec.
void LeaveRootBehind();

// Sets the groups that the machine's databases list for the user now; `groups` if they do not know the user.
std::optional<Error> SetUsersGroups(const std::optional<UserEntry>& user, const std::vector<gid_t>& groups);

// Sets all ids of the process. Also an error if any right of root's is left: the caller must then exit.
std::optional<Error> SetUser(uid_t uid, gid_t gid);

// The user id for a name, or for a number given as text. nullopt: there is no such user.
std::optional<uid_t> UserNumber(const std::string& name);

}  // namespace overcap
