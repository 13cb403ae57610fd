// SPDX-License-Identifier: Apache-2.0
// The policy file (docs/formats/policy.md) as text -> Policy. Pure; memory is bounded by the size of the text
// and by kMaxHosts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/policy/policy.h"
#include "model/policy/policy_problems.h"

namespace overcap {

constexpr size_t kMaxPolicyBytes = 4 << 20;

struct PolicyReading {
  Policy policy;                        // as far as it could be read; to be used only when there is no error
  std::vector<PolicyProblem> problems;  // by line; errors and warnings
};
PolicyReading ReadPolicy(std::string_view text);

// The policy, or kUsage "FILE:LINE: ..." for the first error. Warnings are dropped.
Result<Policy> ParsePolicy(std::string_view text, const std::string& file);

// "policy.yaml:7: lab 'vision' has no members": as ParsePolicy() says it.
std::string ProblemText(const PolicyProblem& problem, const std::string& file);

}  // namespace overcap
