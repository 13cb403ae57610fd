// SPDX-License-Identifier: Apache-2.0
#include "base/json_writer.h"
#include "base/text.h"
#include "control/launch.h"
#include "control/launch_folder.h"
#include "model/json_fields.h"
#include "sys/variables.h"

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

std::string HostFileText(const std::string& hostfile) {
  if (hostfile.empty()) return "";
  std::vector<std::string> words = {"printf", "%s\\n"};
  for (std::string& line : Split(Trim(hostfile), '\n')) words.push_back(std::move(line));
  return ShellJoin(words) + " > HOSTFILE\n";
}

std::string LauncherText(const LaunchCommand& command, const std::vector<std::string>& env) {
  std::string text = HostFileText(command.hostfile_text);
  const Variables variables(env);
  std::string unset;
  for (const std::string& name : command.unset) {
    if (variables.Has(name)) unset += StrCat(" -u ", name);
  }
  if (!unset.empty()) text += StrCat("env", unset, " ");
  for (const std::string& entry : command.env) {
    const size_t equals = entry.find('=');
    text += StrCat(entry.substr(0, equals + 1), ShellQuote(entry.substr(equals + 1)), " ");
  }
  return text + ShellJoin(command.argv);
}

}  // namespace

std::string LaunchText(const PreparedLaunch& prepared, const LaunchOptions& options) {
  if (!prepared.allocation.started_by.empty()) {
    return StrCat("# already a rank (", prepared.allocation.started_by, ")\n", ShellJoin(options.command));
  }
  std::string text = HostsText(prepared.plan);
  text += StrCat("# ", FlavourName(prepared.launcher.flavour), ": ", prepared.launcher.reason, "\n");
  if (!prepared.ssh.empty()) text += StrCat("# to each host: ", ShellJoin(prepared.ssh), " HOST\n");
  const bool own = prepared.command.argv.empty();
  return text + (own ? ShellJoin(options.command) : LauncherText(prepared.command, prepared.env));
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
