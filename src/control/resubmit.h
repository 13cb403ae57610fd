// SPDX-License-Identifier: Apache-2.0
// Runs a job again: the same command, code and environment, bit for bit, under a new id.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "clusters/cluster.h"
#include "sys/clock.h"
#include "sys/random.h"

namespace overcap {

// The spec of a job, as its folder keeps it.
Result<JobSpec> ReadSpec(const JobRecord& record);

// What a resubmission sends. A job that has not ended is stopped first: the new one starts only after its
// end. `gpus` changes the number of GPUs, and of ranks and processors in proportion.
JobSpec ResubmitSpec(const JobRecord& old, const JobSpec& old_spec, std::optional<int> gpus,
                     const std::vector<NodeKind>& nodes, const Clock& clock, Random& random);

Result<SubmitPlan> PlanResubmit(Cluster& cluster, const JobRecord& old, std::optional<int> gpus,
                                const Clock& clock, Random& random);

}  // namespace overcap
