// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace overcap::cli {

class Output;

// What `overcap rank` does. Returns only when the process could not become `command`: the exit status is 127
// when there is no such command and 126 when it cannot be executed, and stderr has said so.
Result<int> BecomeRank(const std::vector<std::string>& command, const std::string& folder);

// The same for a command that was looked for and cannot be started.
Result<int> CommandProblem(const Error& error, Output* out);

}  // namespace overcap::cli
