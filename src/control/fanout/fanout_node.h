// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace overcap {

// `overcap fanout-node`: one node of a fan-out, for a head at the other end of standard input and output. It
// says there what goes wrong.
Result<int> RunFanoutNode(const std::vector<std::string>& words);

}  // namespace overcap
