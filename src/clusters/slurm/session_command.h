// SPDX-License-Identifier: Apache-2.0
// The words of `srun` for people: into a job that runs, or into an allocation of its own. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "clusters/slurm/sbatch_script.h"
#include "model/job_spec.h"

namespace overcap {

// Variables that Slurm sets for a step on its node: there they count more than those that a job's rank was
// given. In the form of `overcap enter --here`.
constexpr std::string_view kVariablesOfAStep =
    "SLURM_,SLURMD_,CUDA_VISIBLE_DEVICES,GPU_DEVICE_ORDINAL,ROCR_VISIBLE_DEVICES,ZE_AFFINITY_MASK";

struct AttachCommand {
  int64_t slurm_id = 0;  // of the job itself, never an array's
  std::string node;      // "": its first one
  bool terminal = false;
  bool stream = false;               // as AttachRequest::stream
  std::vector<std::string> command;  // the first word is a path
};
// A step beside the others of the job: it shares their processors, memory and GPUs, and has their limits.
std::vector<std::string> SrunIntoJob(const AttachCommand& attach);

// "srun: error: n1: task 0: Exited with exit code 3": what its exit status tells as well.
bool IsSrunChatter(std::string_view line);

// The comment by which a session is found in the queue. It is no job of ours: it has no folder.
std::string SessionComment(std::string_view id);

// One task on one node with the spec's resources. `command` as above. kUsage as PlanSbatch().
Result<std::vector<std::string>> SrunSession(const JobSpec& spec, const SbatchSettings& settings,
                                             const std::vector<std::string>& command, bool terminal);

}  // namespace overcap
