// SPDX-License-Identifier: Apache-2.0
// What the nodes of a cluster have, for defaults and for what can never be had. Pure.
#pragma once

#include <vector>

#include "base/result.h"
#include "clusters/cluster.h"
#include "clusters/slurm/sbatch_script.h"
#include "clusters/slurm/sinfo_text.h"

namespace overcap {

// The types of GPU that some node has. A feature counts as a type's when it has its name; of GPUs without a
// type every feature of their nodes may be one.
std::vector<SlurmGpuType> GpuTypesOf(const std::vector<SlurmNode>& nodes);

// kUsage: "asks for 8 GPUs, the cluster has 4", for a cluster on which nothing else runs.
Result<void> CheckFitsNodes(const Resources& resources, const std::vector<SlurmNode>& nodes);

NodeInfo InfoOf(const SlurmNode& node);

// Nodes with the same hardware, partitions and features together, in the order of the first of each.
std::vector<NodeKind> KindsOf(const std::vector<SlurmNode>& nodes);

}  // namespace overcap
