// SPDX-License-Identifier: Apache-2.0
// What is wrong with a policy as a whole: caps that the cluster does not have, labs without members,
// partitions that nobody may use, cyclic preemption. Pure.
#pragma once

#include <string>
#include <vector>

#include "model/policy/policy.h"

namespace overcap {

struct PolicyProblem {
  int line = 0;  // of the file; 0: of no line in particular
  bool warning = false;
  std::string message;  // one lower-case line, without file and line
  std::string hint;
  bool operator==(const PolicyProblem&) const = default;
};

std::vector<PolicyProblem> PolicyProblems(const Policy& policy);

}  // namespace overcap
