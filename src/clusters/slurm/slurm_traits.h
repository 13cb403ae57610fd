// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "clusters/driver_traits.h"
#include "clusters/slurm/policy/render_policy.h"
#include "sys/slurm_here.h"

namespace overcap {

constexpr DriverTraits kSlurmTraits = {.name = "slurm",
                                       .scheduler = true,
                                       .program = "sbatch",
                                       .machine_variable = "SLURM_CONF",
                                       .is_set_up = SlurmIsSetUp,
                                       .job_variable = "SLURM_JOB_ID",
                                       .render_policy = RenderSlurmPolicy};

}  // namespace overcap
