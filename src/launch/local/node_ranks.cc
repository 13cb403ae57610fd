// SPDX-License-Identifier: Apache-2.0
#include "launch/local/node_ranks.h"

#include <signal.h>

#include "launch/rank_variables.h"

namespace overcap {

std::vector<GroupMember> MembersOf(const NodeRanks& node) {
  std::vector<GroupMember> members(node.ranks);
  for (int local = 0; local < node.ranks; ++local) {
    Variables variables(node.env);
    const RankPlace place{node.first_rank + local, node.world_size, local, node.ranks, node.node_rank, ""};
    SetRankVariables(place, node.master_addr, node.master_port, &variables);
    // What a rank prints should be seen when it is printed, also when it dies.
    if (!variables.Has("PYTHONUNBUFFERED")) variables.Set("PYTHONUNBUFFERED", "1");
    SpawnRequest& request = members[local].request;
    request.argv = node.command;
    request.env = variables.entries();
    request.cwd = node.folder;
    request.parent_death_signal = SIGKILL;
    request.default_signals = true;
    if (local < static_cast<int>(node.cpus.size())) request.cpus = node.cpus[local];
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
