// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "model/policy/policy.h"

namespace overcap {

// Partitions each of which is preempted by the next, the last one being the first again; empty: there is no
// cycle. Names that are no partition are passed over.
std::vector<std::string> PreemptionCycle(const Policy& policy);

}  // namespace overcap
