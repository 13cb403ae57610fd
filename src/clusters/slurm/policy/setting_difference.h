// SPDX-License-Identifier: Apache-2.0
// slurm.conf: what a plan wants in it, and what of that the controller does not have. Pure.
#pragma once

#include <vector>

#include "clusters/cluster_policy.h"
#include "clusters/slurm/policy/live_policy.h"
#include "clusters/slurm/policy/policy_plan.h"

namespace overcap {

std::vector<PolicySetting> CompareSettings(const SlurmPolicyPlan& plan, const LivePolicy& live);

// Settings and partitions, to be included by slurm.conf. Lists of words have those of `live` too; nullptr:
// nothing is known of the cluster.
PolicyRendering::File PolicyFile(const SlurmPolicyPlan& plan, const SlurmConfig* live);
constexpr std::string_view kPolicyFileName = "overcap-policy.conf";

}  // namespace overcap
