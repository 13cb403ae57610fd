// SPDX-License-Identifier: Apache-2.0
// Which start of a batch script of Slurm this process is, from its variables. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sys/variables.h"

namespace overcap {

struct SlurmStart {
  int64_t job_id = 0;    // of its own, also for a task of an array
  int64_t array_id = 0;  // of the whole array; 0: no array
  int task = -1;         // its index in the array
  int restart = 0;       // how often Slurm has started it before
  std::vector<std::string> nodes;
  int64_t end_us = 0;  // when its time limit comes, where Slurm tells; 0: not told

  // What handle.json has.
  int64_t HandleId() const { return array_id != 0 ? array_id : job_id; }
  // For scontrol: the last task of an array has the array's own number as its id, and that would mean all
  // tasks.
  std::string Name() const;
  bool operator==(const SlurmStart&) const = default;
};

// kUsage where the variables are not those of a batch script.
Result<SlurmStart> ReadSlurmStart(const Variables& variables);

// Those that Slurm set for the batch script and that ranks shall see as they are: SLURM_*, which GPUs they
// have, and TMPDIR.
std::vector<std::string> VariablesOfSlurm(const Variables& variables);

}  // namespace overcap
