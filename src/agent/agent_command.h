// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace overcap {

// `overcap agent ...`, which no person types: `words` begin with "agent". The exit status.
Result<int> RunAgentCommand(const std::vector<std::string>& words);

}  // namespace overcap
