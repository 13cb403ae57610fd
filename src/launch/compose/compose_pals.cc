// SPDX-License-Identifier: Apache-2.0
// mpiexec of HPE's Parallel Application Launch Service (Aurora, Polaris, Sunspot, Sirius, Crux).
#include <algorithm>

#include "base/text.h"
#include "launch/compose/compose.h"

namespace overcap {
namespace {

// The same number on every host but for the last one, which may have fewer: all that --ppn can say.
bool FillsHosts(const RankPlan& plan) {
  const int ranks = plan.hosts[0].ranks;
  return plan.hosts.back().ranks <= ranks &&
         std::all_of(plan.hosts.begin(), plan.hosts.end() - 1,
                     [&](const PlannedHost& host) { return host.ranks == ranks; });
}

}  // namespace

Result<LaunchCommand> ComposePals(const ComposeInputs& in) {
  const RankPlan& plan = in.plan;
  if (!FillsHosts(plan)) {
    return Fail(ErrorCode::kUsage,
                StrCat("'", in.request.launcher.program, "' (PALS) cannot place ", RanksPerHostText(plan),
                       " ranks on its hosts: each but the last needs the same number"),
                StrCat("--ppn ", plan.MostPerHost(), " fills one host after the other"));
  }
  LaunchCommand command;
  command.argv = {in.request.launcher.program,     "--envall", "--np",
                  std::to_string(plan.world_size), "--ppn",    std::to_string(plan.hosts[0].ranks)};
  const auto name = [](const PlannedHost& host) { return host.name; };
  if (in.request.hostfile.empty()) {
    command.argv.insert(command.argv.end(), {"--hosts", HostLines(plan, name, false)});
  } else {
    command.argv.insert(command.argv.end(), {"--hostfile", in.request.hostfile});
    command.hostfile_text = HostLines(plan, name, true);
  }
  command.argv.insert(command.argv.end(), in.bind_words.begin(), in.bind_words.end());
  return command;
}

}  // namespace overcap
