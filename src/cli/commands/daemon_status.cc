// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/json_scan.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/world.h"
#include "control/engine_call.h"
#include "sys/own_host_name.h"
#include "sys/posix_files.h"

namespace overcap::cli {
namespace {

constexpr int kNotRunning = 3;
constexpr Flag kDaemonStatusFlags[] = {
    {"--system", "", "", "the engine that all users of this machine share"}};

// The other host whose engine daemon.lock names and that has not ended it (docs/formats/job-folder.md), or
// "".
std::string OtherHost(const std::string& root) {
  const std::string lock = PosixFiles().Read(root + "/daemon.lock").value_or("");
  const std::string_view words = Trim(std::string_view(lock).substr(std::min(lock.find('\n'), lock.size())));
  const std::string host = JsonString(JsonMember(words, "host")).value_or("");
  const bool ended = JsonMember(words, "ended") == "true";
  return ended || host == OwnHost() ? "" : std::string(HostNameIn(host));
}

int SayNotRunning(const World& world, bool system) {
  if (world.out().json()) {
    const std::string socket = EngineSocket(world.root(), system);
    JsonWriter json;
    json.BeginObject().Field("running", false).Key("pid").Null().Field("socket", socket);
    world.out().Json(json.Key("uptime_s").Null().Key("counts").Null().EndObject().Text());
  } else if (system) {
    world.out().Line("the engine of this machine is not running; root starts it: systemctl start overcap");
  } else if (const std::string host = OtherHost(world.root()); !host.empty()) {
    world.out().Line(StrCat("no engine is running on this host; the one on host '", host,
                            "' has not ended: ssh ", host, " overcap daemon status"));
  } else {
    world.out().Line("no engine is running; it starts by itself when a job is submitted");
  }
  return kNotRunning;
}

std::string CountsText(const EngineStatus& status) {
  std::vector<std::string> parts;
  for (const auto& [state, count] : status.counts) {
    if (count > 0) parts.push_back(StrCat(count, " ", state));
  }
  return parts.empty() ? "none" : Join(parts, ", ");
}

Result<int> RunDaemonStatus(World& world, const Args& args) {
  const bool system = args.Has("--system");
  const auto status = GetEngineStatus(EngineSocket(world.root(), system));
  if (!status && status.error().code == ErrorCode::kNotFound) return SayNotRunning(world, system);
  if (!status) return Fail(status.error());
  if (world.out().json()) {
    world.out().Json(StrCat("{\"running\":true,", std::string_view(status->json).substr(1)));
    return 0;
  }
  Output& out = world.out();
  out.Line(
      StrCat("engine   running, version ", status->version, ", up ", FormatDuration(status->uptime_seconds)));
  out.Line(StrCat("pid      ", status->pid));
  out.Line(StrCat("socket   ", status->socket));
  out.Line(StrCat("jobs     ", CountsText(*status)));
  out.Line(StrCat("gpus     ", status->gpus_free, " free"));
  out.Line(StrCat("journal  ", FormatBytes(status->journal_bytes)));
  if (!status->gpu_problem.empty())
    out.Warn(StrCat("a job can open GPUs that it was not given: ", status->gpu_problem));
  if (!status->problem.empty()) out.Warn(status->problem);
  if (!status->policy.empty()) out.Line(StrCat("policy   ", status->policy));
  if (!status->policy_problem.empty())
    out.Warn(StrCat("this file is not what is followed, the policy before it is: ", status->policy_problem));
  return 0;
}

}  // namespace

constinit const Command kDaemonStatus = {.name = "daemon status",
                                         .summary = "whether the engine runs, its pid, socket and counts",
                                         .usage = "[--system]",
                                         .flags = kDaemonStatusFlags,
                                         .max_words = 0,
                                         .run = RunDaemonStatus,
                                         .group = CommandGroup::kSetup,
                                         .without_config = true};

}  // namespace overcap::cli
