// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "agent/courier/courier_options.h"
#include "base/result.h"

namespace overcap {

// What an agent and its helpers need of those who know the configuration.
struct AgentSeams {
  JobStoreOpener open;
  // A folder with the variables of this machine in their places.
  std::function<Result<std::string>(const std::string& folder)> expand;
};

// `overcap agent ...`, which no person types: `words` begin with "agent". The exit status.
Result<int> RunAgentCommand(const std::vector<std::string>& words, const AgentSeams& seams);

}  // namespace overcap
