// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <sys/types.h>

#include "base/result.h"

namespace overcap {

// What the machine's user list says of a user.
struct UserEntry {
  std::string name, home, shell;
  gid_t gid = 0;
};
std::optional<UserEntry> FindUser(uid_t uid);  // nullopt: it knows none of that number

// The name of the effective user; its number as text where the machine knows no name.
std::string UserName();

// The shell that the machine's user list names, when it can be run; else /bin/sh.
std::string LoginShell();

// $HOME, else what the machine's user list says. kUsage when neither gives an absolute path.
Result<std::string> HomeFolder();

// Where everything of this user stands (docs/formats/job-folder.md): $OVERCAP_HOME, else
// $XDG_STATE_HOME/overcap, else ~/.local/state/overcap. kUsage when $OVERCAP_HOME is not absolute; a relative
// $XDG_STATE_HOME is ignored, as its specification says. No slash at the end.
Result<std::string> OvercapRoot();

// For errors of that folder.
constexpr std::string_view kRootHint =
    "jobs are kept in the folder that OVERCAP_HOME names; set it to another one";

// What this process gives to those it starts: which permissions new files do not get, and how many files it
// may have open (RLIM_INFINITY: the largest number; 0: not told).
int OwnUmask();
int64_t OwnFileLimit();

}  // namespace overcap
