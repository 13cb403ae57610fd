// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace overcap {

// `overcap agent beside PROGRAM WORD...`: runs it, and heeds no signal meanwhile. Whoever ends what ranks
// have left behind spares what is named an agent, and all below it; so a program that is none gets this one
// above.
Result<int> RunBeside(const std::vector<std::string>& argv);

}  // namespace overcap
