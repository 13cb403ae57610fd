// SPDX-License-Identifier: Apache-2.0
// mpiexec of MPICH, MVAPICH2 and Intel MPI. The environment travels by itself; -genvall says so.
#include "base/text.h"
#include "launch/compose/compose.h"

namespace overcap {

Result<LaunchCommand> ComposeHydra(const ComposeInputs& in) {
  const RankPlan& plan = in.plan;
  LaunchCommand command;
  command.argv = {in.request.launcher.program, "-n", std::to_string(plan.world_size), "-genvall"};
  const bool even = plan.Even();  // Intel MPI heeds the counts of a host list less than -ppn
  if (even) command.argv.insert(command.argv.end(), {"-ppn", std::to_string(plan.hosts[0].ranks)});
  const auto line = [&](const PlannedHost& host) {
    return even ? host.name : StrCat(host.name, ":", host.ranks);
  };
  if (in.request.hostfile.empty() || plan.hosts.size() == 1) {
    command.argv.insert(command.argv.end(), {"-hosts", HostLines(plan, line, false)});
  } else {
    command.argv.insert(command.argv.end(), {"-f", in.request.hostfile});
    command.hostfile_text = HostLines(plan, line, true);
  }
  command.argv.insert(command.argv.end(), in.bind_words.begin(), in.bind_words.end());
  return command;
}

}  // namespace overcap
