// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "clusters/driver_traits.h"
#include "clusters/slurm/policy/render_policy.h"

namespace overcap {

constexpr DriverTraits kSlurmTraits = {
    .name = "slurm",
    .scheduler = true,
    .program = "sbatch",
    .machine_variable = "SLURM_CONF",
    .machine_files = {"/etc/slurm/slurm.conf", "/etc/slurm-llnl/slurm.conf"},
    .job_variable = "SLURM_JOB_ID",
    .render_policy = RenderSlurmPolicy};

}  // namespace overcap
