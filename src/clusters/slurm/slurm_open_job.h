// SPDX-License-Identifier: Apache-2.0
// Inside of slurm_jobs.cc and slurm_job_list.cc.
#pragma once

#include "clusters/slurm/slurm_jobs.h"

namespace overcap {

struct SlurmJobs::Open {
  size_t place = 0;  // among what was asked for
  JobEvidence evidence;
  SlurmSight sight;
  Verdict verdict;
};

}  // namespace overcap
