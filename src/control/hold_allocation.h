// SPDX-License-Identifier: Apache-2.0
// `overcap hold-allocation FILE`: the command of a job that only holds its resources for a person. While it
// runs, ssh knows the way to it. Hidden.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace overcap {

// Until TERM, INT or HUP comes. FILE: AllocationBook::PathOf() its name.
Result<int> RunHoldAllocation(const std::vector<std::string>& words);

}  // namespace overcap
