// SPDX-License-Identifier: Apache-2.0
// The flavours of ComposeLaunch, each in its file; they give all words but the launcher's arguments of the
// user and the ranks' command, which follow in the same way everywhere.
#pragma once

#include <string>
#include <vector>

#include "launch/compose/cpu_bind.h"
#include "launch/compose/launch_command.h"

namespace overcap {

struct ComposeInputs {
  const LaunchRequest& request;
  const RankPlan& plan;
  CpuBind bind;
  std::vector<std::string> bind_words;  // for this launcher
};

Result<LaunchCommand> ComposeSrun(const ComposeInputs& in);
Result<LaunchCommand> ComposePals(const ComposeInputs& in);
Result<LaunchCommand> ComposeHydra(const ComposeInputs& in);
Result<LaunchCommand> ComposeOpenMpi(const ComposeInputs& in);

// Every host's line with `line` and `separator` after, or between, them.
template <typename Line>
std::string HostLines(const RankPlan& plan, Line line, bool as_file) {
  std::string text;
  for (const PlannedHost& host : plan.hosts) {
    if (!as_file && !text.empty()) text += ',';
    text += line(host);
    if (as_file) text += '\n';
  }
  return text;
}

}  // namespace overcap
