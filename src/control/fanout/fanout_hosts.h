// SPDX-License-Identifier: Apache-2.0
// Which hosts a fan-out goes to, and how they are reached.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "control/launch.h"

namespace overcap {

struct FanoutHosts {
  std::vector<std::string> names;  // each once
  std::string reason;              // "SLURM_JOB_NODELIST"
  std::string ssh_program;
  std::vector<std::string> ssh_options;
  std::vector<std::string> warnings;
};

// `typed`: a host file, or a list as one has it ("node1,node[3-5]"); "": those of the job that this shell is
// in. kUsage when there is none.
Result<FanoutHosts> FindFanoutHosts(const LaunchWorld& world, const std::string& typed);

}  // namespace overcap
