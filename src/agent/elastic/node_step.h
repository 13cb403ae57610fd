// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace overcap {

// `overcap agent node ATTEMPT-FOLDER launch ...`, a task of the step that starts an elastic job's other
// nodes: takes its number from Slurm, opens its log there, and runs that launch. Of a job that goes through a
// store: `overcap agent node --id ID --via STORE ... -- launch ...` (stored_node.h).
Result<int> RunNodeStep(const std::vector<std::string>& words);

}  // namespace overcap
