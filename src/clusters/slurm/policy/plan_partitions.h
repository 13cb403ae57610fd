// SPDX-License-Identifier: Apache-2.0
// The lines of slurm.conf that a policy wants. Pure.
#pragma once

#include <string>
#include <vector>

#include "clusters/slurm/policy/policy_classes.h"
#include "clusters/slurm/policy/policy_plan.h"

namespace overcap {

std::string PartitionQos(const PolicyPartition& partition);  // "part-debug"

std::vector<PlannedPartition> PlanPartitions(const Policy& policy,
                                             const std::vector<PreemptionClass>& classes);
std::vector<PlannedSetting> PlanSettings(const Policy& policy);

// CPUs that a job gets for each GPU there when it asks for none; 0: no node of it has GPUs. Slurm knows one
// number for a partition: the smallest of its nodes.
int CpusPerGpuOf(const Policy& policy, const PolicyPartition& partition);

}  // namespace overcap
