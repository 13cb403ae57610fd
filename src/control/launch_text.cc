// SPDX-License-Identifier: Apache-2.0
#include "base/json_writer.h"
#include "base/text.h"
#include "control/launch.h"
#include "control/launch_folder.h"
#include "model/json_fields.h"

namespace overcap {
namespace {

std::string HostsText(const RankPlan& plan) {
  std::string text;
  for (const PlannedHost& host : plan.hosts) {
    const int last = host.first_rank + host.ranks - 1;
    text += StrCat(
        "# ", host.name, ": ",
        host.ranks == 1 ? StrCat("rank ", host.first_rank) : StrCat("ranks ", host.first_rank, "-", last),
        "\n");
  }
  for (const AllocatedHost& host : plan.spares) text += StrCat("# ", host.name, ": spare\n");
  return text;
}

}  // namespace

std::string LaunchText(const PreparedLaunch& prepared, const LaunchOptions& options) {
  if (!prepared.allocation.started_by.empty()) {
    return StrCat("# already a rank (", prepared.allocation.started_by, ")\n", ShellJoin(options.command));
  }
  std::string text = HostsText(prepared.plan);
  text += StrCat("# ", FlavourName(prepared.launcher.flavour), ": ", prepared.launcher.reason, "\n");
  for (const std::string& entry : prepared.command.env) text += StrCat("# ", ShellQuote(entry), "\n");
  if (!prepared.command.hostfile_text.empty()) {
    for (const std::string& line : Split(Trim(prepared.command.hostfile_text), '\n')) {
      text += StrCat("# HOSTFILE: ", line, "\n");
    }
  }
  const bool own = prepared.command.argv.empty();
  return text + ShellJoin(own ? options.command : prepared.command.argv);
}

std::string LaunchJson(const PreparedLaunch& prepared, const LaunchOptions& options) {
  JsonWriter out;
  out.BeginObject()
      .Field("launcher", FlavourName(prepared.launcher.flavour))
      .Field("reason", prepared.launcher.reason)
      .Field("world_size", prepared.plan.world_size);
  WritePlan(prepared.plan, &out);
  out.Key("command").BeginArray();
  for (const std::string& word : options.command) WriteBytes(&out, word);
  out.EndArray().Key("launch_command").BeginArray();
  for (const std::string& word : prepared.command.argv) WriteBytes(&out, word);
  out.EndArray().Field("hostfile", prepared.command.hostfile_text).EndObject();
  return out.Take();
}

}  // namespace overcap
