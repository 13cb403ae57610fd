// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"

namespace overcap {

// `overcap agent listen`, a step of a Slurm job: some signals are for the steps only, and the agent wants to
// hear of them, too. Writes a line, "TERM", for each that comes, and ends with its standard input.
Result<int> RunListener();

}  // namespace overcap
