// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.h"
#include "launch/compose/compose.h"
#include "launch/foreign/launch_contact.h"
#include "launch/torch_run.h"

namespace overcap {
namespace {

// "ppr:4:node", "slot:PE=8:OVERSUBSCRIBE". Ranks per host come from the slots of the host list when they
// differ.
std::string MapBy(const ComposeInputs& in) {
  std::string map = in.plan.Even() ? StrCat("ppr:", in.plan.hosts[0].ranks, ":node") : "slot";
  if (in.bind.kind == CpuBind::Kind::kDepth) map += StrCat(":PE=", std::max(1, in.bind.depth));
  if (in.request.oversubscribe && in.request.launcher.major_version >= 5) map += ":OVERSUBSCRIBE";
  return map;
}

void AddHosts(const ComposeInputs& in, LaunchCommand* command) {
  const bool as_file = !in.request.hostfile.empty() && in.plan.hosts.size() > 1;
  const char* separator = as_file ? " slots=" : ":";
  const std::string hosts = HostLines(
      in.plan, [&](const PlannedHost& host) { return StrCat(host.name, separator, host.ranks); }, as_file);
  command->argv.insert(command->argv.end(),
                       {as_file ? "--hostfile" : "--host", as_file ? in.request.hostfile : hosts});
  if (as_file) command->hostfile_text = hosts;
}

}  // namespace

Result<LaunchCommand> ComposeOpenMpi(const ComposeInputs& in) {
  const LaunchRequest& request = in.request;
  LaunchCommand command;
  command.argv = {request.launcher.program, "--np", std::to_string(in.plan.world_size)};
  AddHosts(in, &command);
  command.argv.insert(command.argv.end(), {"--map-by", MapBy(in), "--rank-by", "slot"});
  command.argv.insert(command.argv.end(), in.bind_words.begin(), in.bind_words.end());
  if (request.as_root) command.argv.push_back("--allow-run-as-root");
  if (request.oversubscribe && request.launcher.major_version < 5) command.argv.push_back("--oversubscribe");
  for (const std::string& name : request.exported) command.argv.insert(command.argv.end(), {"-x", name});
  command.argv.insert(command.argv.end(), {"-x", kPlanVariable});
  if (request.linked) {
    for (const char* name : {kRunVariable, kContactVariable, kKeyVariable})
      command.argv.insert(command.argv.end(), {"-x", name});
  }
  return command;
}

}  // namespace overcap
