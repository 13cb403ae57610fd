// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "clusters/slurm/policy/policy_classes.h"

namespace overcap {

// What Slurm cannot do of a policy or does otherwise, and what its users must type; a line each, for people.
// Pure.
std::vector<std::string> PlanNotes(const Policy& policy, const std::vector<PreemptionClass>& classes);

}  // namespace overcap
