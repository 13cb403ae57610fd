// SPDX-License-Identifier: Apache-2.0
// What has to change so that a live Slurm is as a plan says. Pure.
#pragma once

#include <cstdint>

#include "clusters/cluster_policy.h"
#include "clusters/slurm/policy/live_policy.h"
#include "clusters/slurm/policy/policy_plan.h"

namespace overcap {

// Steps in an order in which each can be made when those before it are, and in which being stopped between
// any two leaves no lab with more than its cap. Maintenance that is over at `now_us` is left out.
PolicyDifference CompareSlurmPolicy(const SlurmPolicyPlan& plan, const LivePolicy& live, int64_t now_us);

}  // namespace overcap
