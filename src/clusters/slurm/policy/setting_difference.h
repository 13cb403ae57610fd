// SPDX-License-Identifier: Apache-2.0
// slurm.conf: what a plan wants in it, and what of that the controller does not have. Pure.
#pragma once

#include <string>
#include <vector>

#include "clusters/cluster_policy.h"
#include "clusters/slurm/policy/live_policy.h"
#include "clusters/slurm/policy/policy_plan.h"

namespace overcap {

std::vector<PolicySetting> CompareSettings(const SlurmPolicyPlan& plan, const LivePolicy& live);

// Nodes of the policy that slurm.conf does not have. slurmctld does not start with a partition of such nodes.
std::vector<std::string> MissingNodes(const SlurmPolicyPlan& plan, const LivePolicy& live);

// All settings and partitions, for a cluster of which nothing is known.
std::string SettingLines(const SlurmPolicyPlan& plan);

}  // namespace overcap
