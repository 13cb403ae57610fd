// SPDX-License-Identifier: Apache-2.0
// Whether and where a launch is tried again. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "launch/rank_plan.h"
#include "launch/runner.h"

namespace overcap {

// Not after a good end, a cancellation, a command that cannot be executed, or a request that cannot be met.
bool WorthRetrying(const AttemptEnd& end);

int64_t BackOffUs(int retry);  // before the first retry 1 s, then twice as long each time, at most a minute

// The plan for the next attempt, without the bad hosts: spares stand in for them, and when there are none
// left, what remains is used (a fixed number of ranks must still fit there). `hosts` is the whole allocation.
Result<RankPlan> PlanAgain(const std::vector<AllocatedHost>& hosts, const PlanRequest& request,
                           const std::vector<std::string>& bad_hosts);

}  // namespace overcap
