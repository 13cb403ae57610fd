// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "base/text.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/commands/person_words.h"
#include "control/job_exit_status.h"
#include "control/terminal_run.h"
#include "model/job_id.h"

namespace overcap::cli {
namespace {

constexpr Flag kShellFlags[] = {
    {"--gpus", "-n", "GPUS", "GPUs; 0 for none"},
    {"--gpu-type", "-g", "TYPES", "which GPUs: 'a40|rtx_6000'"},
    {"--partition", "-p", "PARTITIONS", "where in the cluster: 'short,overcap'"},
    {"--cpus", "-c", "N", "processors"},
    {"--time", "-t", "LIMIT", "how long at most: 30m, 4h"},
    {"--mem", "", "SIZE", "memory: 512M, 16G"},
    {"--account", "", "ACCOUNT", "who pays, in the cluster's own terms"},
    {"--qos", "", "QOS", "the quality of service, in the cluster's own terms"},
    {"--node", "-w", "NODE", "on this node"},
    {"--dry-run", "", "", "print what would be run, run nothing"},
};

Result<JobSpec> ReadSpec(World& world, const Args& args) {
  OC_TRY(cluster, world.GetCluster());
  OC_TRY(request, ReadPersonRequest(world, args));
  OC_TRY(resources, ChooseResources(request, ConfigFor(world.config(), cluster->Name()),
                                    cluster->GetCapabilities().nodes));
  JobSpec spec;
  spec.id = MakeJobId(world.user(), world.clock().WallUs() / 1'000'000,
                      static_cast<uint32_t>(world.random().Next()));
  spec.user = world.user();
  spec.cluster = cluster->Name();
  spec.name = "overcap-shell";
  spec.command = args.words();
  spec.resources = std::move(resources);
  spec.placement = request.placement;
  return spec;
}

class Waiting {
 public:
  Waiting(World& world, ClusterSessions& sessions, const JobSpec& spec)
      : world_(world), sessions_(sessions), spec_(spec), since_us_(world.clock().MonotonicUs()) {}

  void Show() {
    const auto state = sessions_.LookAtSession(spec_.id);
    const std::string why = state && !state->waits_for.empty() ? StrCat(": ", state->waits_for) : "";
    const std::string gpus = spec_.resources.gpus > 0 ? CountOf(spec_.resources.gpus, "GPU") : "a node";
    const int64_t seconds = (world_.clock().MonotonicUs() - since_us_) / 1'000'000;
    world_.out().Progress(
        StrCat("waits for ", gpus, " since ", FormatDuration(seconds), why, " (Ctrl-C gives up)"));
  }

 private:
  World& world_;
  ClusterSessions& sessions_;
  const JobSpec& spec_;
  int64_t since_us_;
};

Result<int> RunSession(World& world, ClusterSessions& sessions, const JobSpec& spec, const Replacement& plan,
                       bool terminal) {
  Output& out = world.out();
  Waiting waiting(world, sessions, spec);
  std::optional<Error> failure;
  TerminalWatch watch;
  watch.is_chatter = [&](std::string_view line) {
    if (auto found = sessions.FailureIn(line)) failure = std::move(found);
    return failure || sessions.IsChatter(line);
  };
  if (terminal && !out.quiet()) watch.waiting = [&] { waiting.Show(); };
  watch.taken_over = [&] { out.ClearProgress(); };
  auto run = RunOnTerminal(plan, watch);
  out.ClearProgress();
  if (!run) return Fail(std::move(run).error());
  if (failure && run->exit_status != 0) return Fail(*failure);
  if (!terminal || !run->interrupted) return run->exit_status;
  out.Note("given up; nothing is held");
  return kStatusDetached;
}

Result<int> RunShell(World& world, const Args& args) {
  OC_TRY(cluster, world.GetCluster());
  ClusterSessions* sessions = cluster->Sessions();
  if (sessions == nullptr) {
    return Fail(ErrorCode::kUsage, StrCat("cluster '", cluster->Name(), "' gives no shells"),
                "overcap alloc holds GPUs there, overcap ssh NAME is a shell with them");
  }
  OC_TRY(spec, ReadSpec(world, args));
  const bool terminal = OnTerminal();
  OC_TRY(plan, sessions->PlanSession(spec, terminal));
  if (args.Has("--dry-run")) {
    world.out().Line(ShellJoin(plan.argv));
    return 0;
  }
  OC_TRY_VOID(world.out().Flush());
  return RunSession(world, *sessions, spec, plan, terminal);
}

}  // namespace

constinit const Command kShell = {
    .name = "shell",
    .summary = "a shell on a GPU node, now",
    .usage = "[-n GPUS] [-g TYPES] [-p PARTITION] [-c CPUS] [-t LIMIT] [-w NODE] [CMD...]",
    .flags = kShellFlags,
    .takes_command = true,
    .run = RunShell,
};

}  // namespace overcap::cli
