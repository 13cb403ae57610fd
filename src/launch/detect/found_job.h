// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "launch/allocation.h"

namespace overcap {

// The job of a scheduler that holds this shell.
struct FoundJob {
  std::string id;
  std::string reason;                // how it was found
  std::vector<AllocatedHost> hosts;  // each once; slots: tasks of the job, whether or not they shall count;
                                     // gpus: -1 where the scheduler does not say
  std::string hosts_reason;
  std::string gpus_reason;  // "": the scheduler says nothing about GPUs
  std::string gpu_type;
  std::vector<std::pair<std::string, std::string>> restored;
};

// Whether a job still holds its hosts.
enum class JobLife { kLives, kOver, kNotTold };

}  // namespace overcap
