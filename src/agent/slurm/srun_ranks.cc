// SPDX-License-Identifier: Apache-2.0
#include "agent/slurm/srun_ranks.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <unistd.h>

#include "agent/ending.h"
#include "agent/rank_environment.h"
#include "base/text.h"
#include "launch/detect/slurm_text.h"
#include "launch/failure_text.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

constexpr std::string_view kFirstLog = "rank-0.log";

// Hands on what happens in the terms of a group of ranks.
class Watcher : public AttemptWatcher {
 public:
  Watcher(ClusterWatch* watch, GroupObserver* observer) : watch_(watch), observer_(*observer) {}
  int64_t Prepare(std::vector<pollfd>* fds) override { return watch_ ? watch_->Prepare(fds) : INT64_MAX; }
  bool Act(std::span<const pollfd> fds) override { return watch_ && watch_->Act(fds); }
  void OnAllBegun() override { observer_.OnStarted({}); }
  void OnRankEnd(int rank, const ProcessEnd& end) override { observer_.OnMemberEnd(rank, end); }
  void OnSignal(int signal) override {
    if (watch_) watch_->OnSignal(signal);
  }

 private:
  ClusterWatch* watch_;
  GroupObserver& observer_;
};

Result<RankPlan> PlanFor(const JobSpec& spec, const SrunSetting& setting) {
  std::vector<AllocatedHost> hosts;
  for (const std::string& name : setting.nodes)
    hosts.push_back({name, 0, std::max(0, setting.gpus_per_node)});
  // Where nodes differ no number can be asked for: each step then has all that the job has.
  if (setting.gpus_per_node < 0) hosts.front().gpus = 1;
  PlanRequest request;
  request.per_node = spec.resources.ranks_per_node;
  request.nodes = spec.resources.nodes;
  return PlanRanks(hosts, request);
}

Result<LaunchCommand> CommandFor(const JobSpec& spec, const RankPlan& plan, const SrunSetting& setting) {
  LaunchRequest request;
  request.launcher = {Flavour::kSrun, setting.srun, 0, ""};
  request.plan = plan;
  request.gpus_from_scheduler = setting.gpus_per_node != 0;
  // Since 22.05 a step does not inherit it.
  const int ranks = std::max(1, spec.resources.ranks_per_node);
  if (spec.resources.cpus > 0)
    request.launcher_args = {StrCat("--cpus-per-task=", (spec.resources.cpus + ranks - 1) / ranks)};
  request.rank_command = {setting.binary, "rank", "--"};
  request.rank_command.insert(request.rank_command.end(), spec.command.begin(), spec.command.end());
  return ComposeLaunch(request);
}

Ending NodeFailed(const AttemptEnd& end) {
  std::vector<std::string> names;
  for (const std::string& name : end.bad_hosts) names.push_back(StrCat("'", name, "'"));
  return {JobState::kLost, -1, 0, -1,
          StrCat(names.size() == 1 ? "node " : "nodes ", Join(names, ", "), " failed: ", end.message)};
}

}  // namespace

Result<SrunRanks> SrunRanks::Make(const JobSpec& spec, const AgentOptions& options,
                                  const RankVariables& variables, const SrunSetting& setting,
                                  const Clock& clock, ClusterWatch* watch) {
  Attempt attempt;
  OC_TRY(plan, PlanFor(spec, setting));
  attempt.plan = std::move(plan);
  OC_TRY(launch, CommandFor(spec, attempt.plan, setting));
  attempt.launch = std::move(launch);
  attempt.command = spec.command;
  // What makes it a rank each gets on its node.
  JobSpec no_rank = spec;
  no_rank.batch = true;
  attempt.env =
      RankEnvironment(variables.submitter, no_rank, options, {setting.folder, 0, variables.cluster}, 0);
  attempt.run = RunOf(spec, options);
  attempt.folder = setting.folder;
  attempt.binary = setting.binary;
  attempt.grace_us = setting.grace_us;
  attempt.patient = true;
  return SrunRanks(spec, options, std::move(attempt), clock, watch);
}

std::string SrunRanks::Words() const {
  return ShellJoin(attempt_.launch.argv);
}

void SrunRanks::NameTask(int task, int attempt) {
  SetTask(&attempt_.env, spec_, options_, task, attempt);
}

Result<RankLogs> SrunRanks::MakeLogs(const std::vector<std::string>& logs) {
  const std::string& first = logs.front();
  attempt_.log_folder = first.substr(0, first.rfind('/'));
  const bool plain = first.ends_with(StrCat("/", kFirstLog));
  if (!plain) attempt_.log_folder = first.substr(0, first.size() - kFirstLog.size() - 1) + ".launch";
  OC_TRY_VOID(PosixFiles().MakeFolders(attempt_.log_folder));
  OC_TRY(made, RankLogs::Make(attempt_.log_folder, attempt_.plan.world_size, Tee::kNone));
  made.Bound(spec_.logs_max);
  for (int rank = 0; !plain && rank < attempt_.plan.world_size; ++rank) {
    if (link(made.PathOf(rank).c_str(), logs[rank].c_str()) != 0)
      return Fail(ErrnoError(errno, StrCat("cannot make log '", logs[rank], "'")));
  }
  return made;
}

Ending SrunRanks::Run(const std::vector<std::string>& logs, GroupObserver* observer) {
  auto made = MakeLogs(logs);
  if (!made) return CannotRun(made.error().message);
  // What srun says follows it.
  if (auto log = PosixFiles().OpenAppend(attempt_.log_folder + "/launcher.log"))
    (void)(*log)->Append(StrCat("$ ", Words(), "\n"));
  Watcher watcher(watch_, observer);
  attempt_.watcher = &watcher;
  KernelRandom random;
  const AttemptEnd end = LauncherRunner(clock_, random).Run(attempt_, &*made);
  attempt_.watcher = nullptr;
  for (const std::string& note : end.notes) observer->OnNote(note);
  if (!made->Problem().empty()) observer->OnNote(made->Problem());
  return EndingOf(end);
}

Ending EndingOf(const AttemptEnd& end) {
  using Cause = AttemptEnd::Cause;
  const int status = ExitStatusOf(end);
  if (!end.bad_hosts.empty() && (end.cause == Cause::kHostFailed || end.cause == Cause::kCancelled))
    return NodeFailed(end);
  switch (end.cause) {
    case Cause::kDone:
      return {JobState::kSucceeded, 0, 0, -1, ""};
    case Cause::kRankFailed: {
      const bool known = end.first && end.first->rank >= 0;
      const bool plain =
          known && end.first->reason.empty() && end.first->end_known && !end.first->out_of_memory;
      return {JobState::kFailed, status, end.first ? end.first->end.signal : 0, known ? end.first->rank : -1,
              plain ? "" : EndLine(end, 0)};
    }
    case Cause::kCancelled:
      return {JobState::kCancelled, 128 + SIGTERM, SIGTERM, -1, ""};
    case Cause::kHostFailed:
    case Cause::kIdle:
    case Cause::kCannotRun:
      break;
  }
  return CannotRun(end.message);
}

int GpusPerNode(const Variables& variables) {
  if (const auto gpus = ParseSlurmGpus(variables.Get("SLURM_GPUS_PER_NODE"));
      gpus && !variables.Get("SLURM_GPUS_PER_NODE").empty())
    return gpus->count;
  const bool any = !variables.Get("SLURM_GPUS_ON_NODE").empty() || !variables.Get("SLURM_JOB_GPUS").empty();
  return any ? -1 : 0;
}

}  // namespace overcap
