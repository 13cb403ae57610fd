// SPDX-License-Identifier: Apache-2.0
#include "agent/slurm/side_step.h"

namespace overcap {

Result<LaunchCommand> SideStep(const std::string& srun, std::span<const std::string> nodes,
                               const std::vector<std::string>& words,
                               const std::vector<std::string>& command) {
  LaunchRequest request;
  request.launcher = {Flavour::kSrun, srun, 0, ""};
  for (const std::string& node : nodes) request.plan.hosts.push_back({node, request.plan.world_size++, 1, 0});
  request.hosts_chosen = true;
  request.launcher_args = {"--quiet", "--mem=0", "--gres=none"};
  request.launcher_args.insert(request.launcher_args.end(), words.begin(), words.end());
  request.rank_command = command;
  return ComposeLaunch(request);
}

}  // namespace overcap
