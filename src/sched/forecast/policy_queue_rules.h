// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "model/past_run.h"
#include "model/policy/policy.h"
#include "sched/forecast/live_queue.h"

namespace overcap::forecast {

// The rules of a policy in the place of what was read from a picture: times and limits of partitions, who
// gives way and with which grace, fair shares with what was used before, and the order that follows.
// Partitions and labs are found by name.
void FollowPolicy(const Policy& policy, const std::vector<PastRun>& past, LiveQueue* queue);

}  // namespace overcap::forecast
