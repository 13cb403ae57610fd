// SPDX-License-Identifier: Apache-2.0
#include "launch/local/node_ranks.h"

#include <signal.h>

#include "launch/rank_variables.h"
#include "sys/devices.h"

namespace overcap {

std::vector<GroupMember> MembersOf(const NodeRanks& node) {
  std::vector<GroupMember> members(node.ranks);
  const int usable = static_cast<int>(AffinityCpus().size());
  for (int local = 0; local < node.ranks; ++local) {
    Variables variables(node.env);
    const RankPlace place{node.first_rank + local, node.world_size, local, node.ranks, node.node_rank, ""};
    const bool bound = local < static_cast<int>(node.cpus.size());
    const RankCpus cpus{bound ? static_cast<int>(node.cpus[local].size()) : usable, node.job_cpus};
    SetRankVariables({place, node.master_addr, node.master_port, cpus, node.run}, &variables);
    // What a rank prints should be seen when it is printed, also when it dies.
    if (!variables.Has("PYTHONUNBUFFERED")) variables.Set("PYTHONUNBUFFERED", "1");
    SpawnRequest& request = members[local].request;
    request.argv = node.command;
    request.env = variables.entries();
    request.cwd = node.folder;
    request.parent_death_signal = SIGKILL;
    request.default_signals = true;
    if (bound) request.cpus = node.cpus[local];
    members[local].split = true;
  }
  // Looked up once; where that fails, the start of the first one says why.
  if (node.ranks == 0) return members;
  const SpawnRequest& first = members[0].request;
  if (const auto program = ResolveProgram(first.argv[0], PathOf(first.env), node.folder)) {
    for (GroupMember& member : members) member.request.program = *program;
  }
  return members;
}

}  // namespace overcap
