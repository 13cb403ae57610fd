// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "clusters/cluster_policy.h"

namespace overcap {

// slurm.conf, gres.conf and the sacctmgr commands of a policy, for a cluster that has nothing of it yet.
// Pure.
Result<PolicyRendering> RenderSlurmPolicy(const Policy& policy);

}  // namespace overcap
