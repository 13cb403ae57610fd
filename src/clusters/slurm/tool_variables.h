// SPDX-License-Identifier: Apache-2.0
// The environment in which Slurm's programs must be run for their answers to be as our readers expect them.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace overcap {

// Whether a variable of the caller's must be left out. SQUEUE_STATES and its like change what is asked;
// SBATCH_ARRAY_INX and its like change what is submitted; SLURM_MEM_PER_NODE and its like, of a job in which
// sbatch is called, would bind the new job. Those that say which cluster, account, partition or QOS stay.
bool IsUnwantedToolVariable(std::string_view name);

// Whether a variable of the submitter's goes with a batch job through Slurm: what the agent needs to start,
// and what says which Slurm it is. The rest travels in the store's private blob.
bool IsBatchVariable(std::string_view name);

// Those to be set for `program`: times in seconds since 1970, lists of array tasks in full. To make those
// seconds squeue goes through the rules of its time zone for each time that it prints, a fifth of its work
// with ten thousand jobs; it takes no time from us and so is told of none.
std::vector<std::pair<std::string, std::string>> ToolVariables(std::string_view program);

}  // namespace overcap
