// SPDX-License-Identifier: Apache-2.0
// A node of an elastic job that goes through a store (docs/formats/job-store.md), other than the first: it
// shares no folder with any other, and has a courier of its own.
#pragma once

#include <string>
#include <vector>

#include "agent/options.h"
#include "base/result.h"

namespace overcap {

// Which job, attempt and store it is; "launch" and what follows it comes behind.
std::vector<std::string> StoredNodeWords(const AgentOptions& options);

struct StoredNodeOrder {
  AgentOptions options;
  std::vector<std::string> launch;
};
Result<StoredNodeOrder> ParseStoredNodeWords(const std::vector<std::string>& words);

// Brings spec, environment and code, runs that launch, and waits until what it wrote is in the store.
Result<int> RunStoredNode(const std::vector<std::string>& words, int node);

}  // namespace overcap
