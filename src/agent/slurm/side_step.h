// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "launch/compose/launch_command.h"

namespace overcap {

// A step of a Slurm job beside its ranks: `command` once on each of these nodes, in their order, with none of
// what the ranks need. `words` are srun's further ones.
Result<LaunchCommand> SideStep(const std::string& srun, std::span<const std::string> nodes,
                               const std::vector<std::string>& words,
                               const std::vector<std::string>& command);

}  // namespace overcap
