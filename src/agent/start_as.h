// SPDX-License-Identifier: Apache-2.0
// `overcap agent as ...`: the step from the engine of root to an agent of the user
// (docs/formats/system-engine.md).
#pragma once

#include <cstdint>
#include <string>
#include <sys/types.h>
#include <vector>

#include "base/result.h"
#include "sys/limits.h"

namespace overcap {

struct StartAs {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;  // for users whom the machine's lists do not know
  std::vector<NamedLimit> limits;
  std::string claim;               // the slot's claim to be made first; "": none, a helper
  std::string area;                // of the user
  std::vector<std::string> words;  // after `overcap agent`
  bool operator==(const StartAs&) const = default;
};

// `--uid N --gid N --groups 4,27 --limits nofile=1:2 --area DIR [--claim FILE] -- WORDS...`; kUsage names
// what is wrong.
Result<StartAs> ParseStartAs(const std::vector<std::string>& args);

// Becomes that user's process for good. Returns only when that failed: the caller ends at once. kConflict:
// somebody else has the claim.
Error BecomeAgent(const StartAs& start);

// Whether it is a background task: emptying a folder or making a spare copy. Such a process does not exec,
// because after an exec the user's other processes could trace it (ptrace).
bool IsHelper(const StartAs& start);
// Turns this process into that user's for good; the caller goes on in this program.
Result<void> BecomeHelper(const StartAs& start);

}  // namespace overcap
