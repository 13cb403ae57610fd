// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "cli/command.h"

namespace overcap::cli {

// The value of --rank: "0,2" -> {0, 2}, "all" -> {}; {0} when it was not given.
Result<std::vector<int>> ReadRanks(const Args& args);

}  // namespace overcap::cli
