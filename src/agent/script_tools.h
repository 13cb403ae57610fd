// SPDX-License-Identifier: Apache-2.0
// A batch script written for Slurm runs on a machine without Slurm: it gets the variables that sbatch sets,
// and `srun` and `scontrol` first in its PATH, which are this program under another name
// (control/script_step.h).
#pragma once

#include <string>

#include "agent/attempt_folder.h"
#include "base/result.h"
#include "model/job_spec.h"
#include "sys/variables.h"

namespace overcap {

// Not of elastic jobs: they run no script.
inline bool HasScriptTools(const JobSpec& spec, const AgentOptions& options) {
  return spec.batch && options.under.empty() && !spec.resources.elastic();
}

// Makes `attempt-N/tools` with links to `program`.
Result<void> MakeScriptTools(const AttemptFolder& attempt, const std::string& program);

// Removes the SLURM_* of the submitter and sets those of this job. `folder`: where the script starts.
void SetScriptVariables(const JobSpec& spec, const AgentOptions& options, const std::string& folder,
                        Variables* variables);

// The variables that differ between the tasks of an array.
void SetScriptTask(const JobSpec& spec, int task, Variables* variables);

}  // namespace overcap
