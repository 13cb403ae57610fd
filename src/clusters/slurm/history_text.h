// SPDX-License-Identifier: Apache-2.0
// How long jobs took, as `sacct` tells it for everybody who may be seen: little of each, there are many.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/past_run.h"

namespace overcap {

// Of jobs that ended after `since_us`. Like SqueueCommand(): `mark` for this call alone, variables of
// tool_variables.h.
std::vector<std::string> HistoryCommand(int64_t since_us, std::string_view mark);

// Those that ran and are over.
Result<std::vector<PastRun>> ParseHistory(std::string_view text, std::string_view mark);

// Whether the answer says that this cluster writes down no jobs: then there is no history, and that is no
// failure.
bool SaysThereIsNoHistory(std::string_view err);

}  // namespace overcap
