// SPDX-License-Identifier: Apache-2.0
// `overcap hold-allocation FILE`: the command of a job that only holds its resources for a person. While it
// runs, ssh knows the way to it. Hidden.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace overcap {

// Until TERM, INT or HUP comes. FILE: AllocationBook::PathOf() its name. Workspaces that save themselves on
// this node are told of a warning (USR1) and of the end, and have until the job is killed to save once more;
// what is saved goes to the job's log.
Result<int> RunHoldAllocation(const std::vector<std::string>& words);

}  // namespace overcap
