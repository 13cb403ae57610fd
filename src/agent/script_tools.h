// SPDX-License-Identifier: Apache-2.0
// What a batch script written for Slurm finds on a machine without Slurm: the variables that sbatch sets, and
// `srun` and `scontrol` first in its PATH, which are this program under another name (control/script_step.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "agent/attempt_folder.h"
#include "base/result.h"
#include "model/job_spec.h"
#include "sys/variables.h"

namespace overcap {

inline bool HasScriptTools(const JobSpec& spec, const AgentOptions& options) {
  return spec.batch && options.under.empty();
}

// SLURM_JOB_ID: a number of at most 18 digits that no other job of the user has.
int64_t ScriptNumber(std::string_view job_id);

// Makes `attempt-N/tools` with links to `program`.
Result<void> MakeScriptTools(const AttemptFolder& attempt, const std::string& program);

// Removes the SLURM_* of the submitter and sets those of this job. `folder`: where the script starts.
void SetScriptVariables(const JobSpec& spec, const AgentOptions& options, const std::string& folder,
                        Variables* variables);

// The variables that differ between the tasks of an array.
void SetScriptTask(const JobSpec& spec, int task, Variables* variables);

}  // namespace overcap
