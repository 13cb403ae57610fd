// SPDX-License-Identifier: Apache-2.0
// How a job of ours becomes a batch job of Slurm: the words of `sbatch` and the script, exactly as they are
// sent.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/job_spec.h"

namespace overcap {

// One type of GPU as the cluster knows it. Either name may be empty: not every cluster has both.
struct SlurmGpuType {
  std::string gres;     // "a40", as in gpu:a40:4
  std::string feature;  // "a40", as in --constraint
};

struct SbatchSettings {
  std::vector<std::string> partitions;  // in this order; the first that can start the job takes it
  std::string account, qos, constraint, reservation;
  std::vector<SlurmGpuType>
      gpu_types;  // empty: not known; a type is then taken for a gres, several for features
  bool gpu_type_as_constraint = false;  // ask by feature even where a gres type would do
  int warn_seconds = 0;                 // USR1 so long before the time limit; 0: none
  std::vector<std::string> extra_args;  // the user's own words for sbatch; they win over ours
};

struct SlurmDependency {
  int64_t slurm_id = 0;
  bool any_end = false;  // false: it must have succeeded
};

struct SbatchRequest {
  JobSpec spec;
  std::string folder;              // jobs/<id>, absolute, seen by every node
  std::vector<std::string> agent;  // what the script becomes: absolute path of the binary, "agent", ...
  std::vector<SlurmDependency>
      after;  // those of spec.after and spec.replaces that have not ended, by Slurm's ids
};

struct SbatchPlan {
  std::vector<std::string> argv;  // reads the script, which has the other options, from its standard input
  std::string script_path;        // <folder>/script.sh
  std::string script;
  std::vector<std::string> notes;  // what Slurm will do differently from what was asked; for people
};

// The command of a job's plan as far as it is known when nothing else is: sbatch can begin with it while the
// job is still being made, and is the right one unless an option of the job cannot stand in a script.
std::vector<std::string> SbatchCommand(const std::string& id, const Placement& placement,
                                       const SbatchSettings& settings);

// Pure. kUsage says what this cluster cannot be asked for.
Result<SbatchPlan> PlanSbatch(const SbatchRequest& request, const SbatchSettings& settings);

// Checks words for sbatch that a user gives: kUsage for options that Overcap sets itself (--array, --output,
// ...), for words that would be taken as the script, and for control characters.
Result<void> CheckSbatchArgs(const std::vector<std::string>& args);

// The options that ask for spec.resources' GPUs, empty without any.
Result<std::vector<std::string>> GpuOptions(const Resources& resources, const SbatchSettings& settings);

}  // namespace overcap
