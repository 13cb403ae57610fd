// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "agent/options.h"
#include "base/result.h"

namespace overcap {

// What a batch script of Slurm becomes (docs/formats/slurm-job.md): finds out which attempt and slot it is,
// runs it, and sees to it that the job is started again where it shall be. The exit status is for Slurm (its
// dependencies look at it): that of the command, 17 when nothing was run.
Result<int> RunSlurmAgent(const AgentOptions& options);

}  // namespace overcap
