// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "sys/files.h"

namespace overcap {

// handle.json (docs/formats/slurm-job.md): makes it, or sees whether it names this job of Slurm. False: the
// job is another one's, and nothing may be run.
Result<bool> AgreeOnHandle(const std::string& job_dir, const std::string& cluster, int64_t slurm_id,
                           Files* files);

}  // namespace overcap
