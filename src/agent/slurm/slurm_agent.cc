// SPDX-License-Identifier: Apache-2.0
#include "agent/slurm/slurm_agent.h"

#include <algorithm>
#include <span>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/attempt_run.h"
#include "agent/courier/start_courier.h"
#include "agent/slot_claim.h"
#include "agent/slurm/side_step.h"
#include "agent/slurm/slurm_handle.h"
#include "agent/slurm/slurm_requeue.h"
#include "agent/slurm/slurm_start.h"
#include "agent/slurm/slurm_verdict.h"
#include "agent/slurm/slurm_watch.h"
#include "base/json_scan.h"
#include "base/text.h"
#include "model/agent_report.h"
#include "sys/own_program.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

constexpr int64_t kSecond = 1'000'000;
constexpr int64_t kEndedUs = 10 * kSecond;   // for Slurm to end what it was asked to start again
constexpr int64_t kBringUs = 150 * kSecond;  // stores try for 90 s
constexpr int64_t kCancelUs = 3 * kSecond;
constexpr int64_t kTimeToTry = 10 * kSecond;  // less is not worth another attempt

// For Slurm: 0 only for what succeeded.
int ExitStatusFor(const Ending& ending) {
  if (ending.state == JobState::kSucceeded) return 0;
  return ending.exit_status > 0 && ending.exit_status < 256 ? ending.exit_status : 1;
}

// A rank that does not heed TERM is to be ended before Slurm ends the agent itself.
int64_t GraceUs(const AgentOptions& options, const Variables& variables) {
  const auto conf = PosixFiles().Read(std::string(variables.Get("SLURM_CONF")));
  const int64_t kill_us = KillWaitSeconds(conf.value_or("")) * kSecond;
  return std::min(options.grace_seconds * kSecond, std::max(kill_us - 2 * kSecond, kill_us / 2));
}

// One start of a batch script.
class SlurmAgent {
 public:
  SlurmAgent(const AgentOptions& options, int64_t grace_us, Variables variables, const Clock& clock,
             Supervisor* supervisor, Courier* courier)
      : options_(options),
        grace_us_(grace_us),
        variables_(std::move(variables)),
        tools_(SlurmToolVariables(variables_)),
        clock_(clock),
        supervisor_(*supervisor),
        courier_(courier) {}

  Result<int> Run() {
    OC_TRY(start, ReadSlurmStart(variables_));
    start_ = std::move(start);
    OC_TRY(text, files_.Read(options_.job_dir + "/spec.json"));
    OC_TRY(spec, SpecFromJson(text));
    spec_ = std::move(spec);
    if (spec_.array.empty() != (start_.array_id == 0))
      return Fail(ErrorCode::kCorrupt, StrCat("job '", spec_.id, "' is ", spec_.array.empty() ? "no" : "an",
                                              " array, Slurm's job ", start_.Name(), " is the contrary"));
    OC_TRY(ours, AgreeOnHandle(options_.job_dir, spec_.cluster, start_.HandleId(), &files_));
    if (!ours) return kAgentNotMine;
    OC_TRY(agreed, AgreeInStore());
    if (!agreed) return kAgentNotMine;
    claim_ = OwnClaim();
    claim_.slurm_id = start_.job_id;
    claim_.slurm_restart = start_.restart;
    claim_.nodes = ToUtf8(variables_.Get("SLURM_JOB_NODELIST"));
    OC_TRY(listener, ListenerOf());
    OC_TRY(others, OthersOf());
    others_ = std::move(others);
    watch_.emplace(
        SlurmWatchInputs{spec_, start_, options_.job_dir, grace_us_, tools_, clock_, std::move(listener)});
    return spec_.array.empty() ? RunJob() : RunTask();
  }

 private:
  bool OnNodes() const { return !spec_.batch && !spec_.resources.elastic() && start_.nodes.size() > 1; }

  // An elastic job's agent of this node is started here; those of the other nodes by one step, that a lost
  // node does not end.
  Result<std::optional<OtherNodes>> OthersOf() const {
    if (!spec_.resources.elastic() || start_.nodes.size() < 2) return std::optional<OtherNodes>();
    const int gpus = GpusPerNode(variables_);
    LaunchRequest request;
    request.launcher = {Flavour::kSrun, Srun(), 0, ""};
    for (size_t i = 1; i < start_.nodes.size(); ++i)
      request.plan.hosts.push_back({start_.nodes[i], static_cast<int>(i) - 1, 1, std::max(0, gpus)});
    request.plan.world_size = static_cast<int>(start_.nodes.size()) - 1;
    request.hosts_chosen = true;
    request.gpus_from_scheduler = gpus != 0;
    request.launcher_args = {"--job-name=overcap-nodes", "--no-kill", "--kill-on-bad-exit=0", "--wait=0"};
    const int cpus = std::max(spec_.resources.cpus, spec_.resources.ranks_per_node);
    if (cpus > 1) request.launcher_args.push_back(StrCat("--cpus-per-task=", cpus));
    OC_TRY(command, ComposeLaunch(request));
    return std::optional<OtherNodes>(
        {command.argv, command.unset, start_.nodes.front(), request.plan.world_size});
  }

  std::string Srun() const {
    return ResolveProgram("srun", PathOf(variables_.entries()), "/").value_or("srun");
  }

  // With a grace time Slurm tells the steps, and only them, that they must make room: a job without any would
  // learn of it when that time is over.
  Result<LaunchCommand> ListenerOf() const {
    if (!spec_.requeue || OnNodes() || start_.nodes.empty()) return LaunchCommand{};
    return SideStep(Srun(), std::span(start_.nodes).first(1), {"--job-name=overcap-listen"},
                    {OwnProgram(), "agent", "listen"});
  }

  // Jobs through a store: the same with agents on other nodes, and what those have done so far.
  Result<bool> AgreeInStore() {
    if (courier_ == nullptr) return true;
    OC_TRY(text, courier_->Create("handle.json", &supervisor_));
    if (ParseInt(JsonMember(text, "slurm_id")).value_or(0) != start_.HandleId()) return false;
    std::vector<std::string> names;
    if (!spec_.array.empty()) {
      const int position = spec_.array.PositionOf(start_.task);
      names.push_back(StrCat("attempt-1/task-", start_.task, "."));
      for (int restart = 0; restart < start_.restart && position >= 0; ++restart)
        names.push_back(StrCat("attempt-1/agent-", restart * spec_.array.Count() + position, "."));
    }
    OC_TRY_VOID(courier_->Bring(names, kBringUs, &supervisor_));
    return true;
  }

  // True: the slot is ours everywhere.
  Result<bool> ClaimInStore() {
    if (courier_ == nullptr) return true;
    const AttemptFolder attempt(options_);
    OC_TRY(text, courier_->Create(NameOf(attempt.Claim()), &supervisor_));
    OC_TRY(ours, files_.Read(attempt.Claim()));
    return text == ours;
  }

  std::string NameOf(const std::string& path) const { return path.substr(options_.job_dir.size() + 1); }

  // The starts of this job, or of this array's task, before this one: latest last.
  std::vector<AgentOptions> EarlierStarts(int position) const {
    std::vector<AgentOptions> starts;
    AgentOptions each = options_;
    if (position < 0) {
      for (each.attempt = 1; files_.Exists(AttemptFolder(each).Path()); ++each.attempt)
        starts.push_back(each);
    } else {
      for (each.slot = position; each.slot < start_.restart * spec_.array.Count() + position;
           each.slot += spec_.array.Count())
        starts.push_back(each);
    }
    return starts;
  }

  // What has succeeded is not run again, whatever makes Slurm start it.
  bool HasSucceeded(int position) const {
    if (start_.restart == 0) return false;
    const auto starts = EarlierStarts(position);
    return std::any_of(starts.begin(), starts.end(), [&](const AgentOptions& each) {
      const AgentReport report = ParseAgentReport(files_.Read(AttemptFolder(each).Report()).value_or(""));
      return report.end && report.end->state == JobState::kSucceeded && report.requeue.empty();
    });
  }

  // Slurm 24.05 and newer requeue a job that an earlier start requeued in its grace time once more, at its
  // next end. One that has succeeded is let through: its next start runs nothing, and only that makes Slurm
  // call it completed, for jobs that wait for it.
  void EndForGood(int position) const {
    if (start_.restart == 0 || !verdict_->requeue.empty()) return;
    if (verdict_->ending.state == JobState::kSucceeded) return;
    const auto starts = EarlierStarts(position);
    if (std::any_of(starts.begin(), starts.end(),
                    [&](const AgentOptions& each) { return files_.Exists(AttemptFolder(each).Requeue()); }))
      ForbidRequeue(start_.Name(), tools_);
  }

  // A job that fails may be tried again where it is.
  Result<int> RunJob() {
    if (HasSucceeded(-1)) return 0;
    for (int first = 1;; first = options_.attempt + 1) {
      OC_TRY(claimed, ClaimNextAttempt(options_.job_dir, claim_, first));
      if (!claimed) return kAgentNotMine;
      options_.attempt = claimed->number;
      OC_TRY(ours, ClaimInStore());
      if (!ours) {  // an agent elsewhere was faster: its claim is what we go behind
        OC_TRY_VOID(files_.RemoveTree(AttemptFolder(options_).Path()));
        OC_TRY_VOID(courier_->Bring({}, kBringUs, &supervisor_));
        --options_.attempt;
        continue;
      }
      OC_TRY(status, RunSlot(-1, &claimed->report));
      if (TryAgain()) continue;
      EndForGood(-1);
      return status;
    }
  }

  // attempt-1 is that of all tasks; each start of a task has a slot of its own.
  Result<int> RunTask() {
    const int position = spec_.array.PositionOf(start_.task);
    if (position < 0)
      return Fail(ErrorCode::kCorrupt, StrCat("job '", spec_.id, "' has no task ", start_.task));
    if (HasSucceeded(position)) return 0;
    options_.slot = start_.restart * spec_.array.Count() + position;
    const AttemptFolder attempt(options_);
    OC_TRY_VOID(files_.MakeFolders(attempt.Path()));
    OC_TRY(report, ClaimSlot(attempt, claim_));
    if (!report) return kAgentNotMine;
    OC_TRY(ours, ClaimInStore());
    if (!ours) return kAgentNotMine;
    OC_TRY(status, RunSlot(start_.task, &*report));
    EndForGood(position);
    return status;
  }

  ClusterPart PartOf(int task, ReportFile* report) {
    ClusterPart part;
    part.variables = VariablesOfSlurm(variables_);
    part.task = task;
    part.watch = &*watch_;
    part.courier = courier_;
    part.judge = [this](const Ending& ranks) { return Judge(ranks); };
    watch_->Begin(&supervisor_, OnNodes(), report, AttemptFolder(Start(1)).Claim());
    part.others = others_;
    part.grace_us = grace_us_;
    part.on_nodes = OnNodes();
    if (start_.nodes.size() > 1)
      part.srun = {start_.nodes, GpusPerNode(variables_), Srun(), OwnProgram(), "", grace_us_};
    return part;
  }

  Ending Judge(const Ending& ranks) {
    stopped_ = ranks.state == JobState::kCancelled;
    // Somebody may have written down why.
    if (stopped_ && courier_ != nullptr) (void)courier_->BringCancel(kCancelUs);
    verdict_ = JudgeEnd(spec_, watch_->Collect(ranks));
    return verdict_->ending;
  }

  Result<int> RunSlot(int task, ReportFile* report) {
    const AttemptFolder attempt(options_);
    const int64_t begin_us = clock_.MonotonicUs();
    verdict_.reset();
    LookBack(report);
    report->Write(ClaimedLine(clock_.WallUs(), claim_));
    if (courier_ != nullptr) courier_->Track({NameOf(attempt.Report())});
    ClusterPart part = PartOf(task, report);
    const Ending ended =
        IsCancelled() ? Ending{JobState::kCancelled, -1, 0, -1, ""}
                      : AttemptRun(options_, attempt, clock_, std::move(part), &supervisor_, report).Run();
    if (!verdict_) Judge(ended);  // of an array that could not begin its task, too
    CheckTooSoon(clock_.MonotonicUs() - begin_us, report);
    if (courier_ != nullptr)
      DrainCourier(courier_, stopped_ || watch_->told() ? kStopSeconds : kDrainSeconds, clock_.WallUs(),
                   report, &verdict_->ending);
    if (!verdict_->requeue.empty()) report->Queue(RequeueLine(clock_.WallUs(), verdict_->requeue));
    report->Write(EndLine(clock_.WallUs(), verdict_->ending));
    report->Sync();
    if (report->error() != 0)
      return Fail(ErrnoError(report->error(), StrCat("cannot write '", attempt.Report(), "'")));
    if (courier_ != nullptr) (void)courier_->Drain(kStopSeconds);
    if (verdict_->ask) Requeue(attempt, report);
    return ExitStatusFor(verdict_->ending);
  }

  bool IsCancelled() const { return files_.Exists(options_.job_dir + "/cancel.json"); }

  // The start that is `later` than this one; before it when negative.
  AgentOptions Start(int later) const {
    AgentOptions other = options_;
    (spec_.array.empty() ? other.attempt : other.slot) += later * std::max(1, spec_.array.Count());
    return other;
  }

  // Where Slurm has lost sight of a node, an earlier start may still run there. What Overcap may have said of
  // its end no longer holds.
  void LookBack(ReportFile* report) {
    (void)files_.Remove(options_.job_dir + "/ended.json");
    const auto earlier = EarlierReports();
    if (earlier.empty() || earlier.front().end) return;
    report->Queue(NoteLine(clock_.WallUs(),
                           "the start before this one has not reported its end; if it still "
                           "runs, it stops within 30 s"));
  }

  // Reports of the starts before this one, the latest first.
  std::vector<AgentReport> EarlierReports() const {
    std::vector<AgentReport> reports;
    for (int i = 1; i <= 2; ++i) {
      const AgentOptions other = Start(-i);
      const auto text = files_.Read(AttemptFolder(other).Report());
      if (other.attempt < 1 || other.slot < 0 || !text) break;
      reports.push_back(ParseAgentReport(*text));
    }
    return reports;
  }

  void CheckTooSoon(int64_t lasted_us, ReportFile* report) {
    if (!verdict_->ask || !EndsTooSoon(EarlierReports(), verdict_->requeue, lasted_us)) return;
    report->WriteIfRoom(
        NoteLine(clock_.WallUs(), StrCat("it has ended three times within a minute of its start (",
                                         verdict_->requeue, "): it is not started again")));
    verdict_->requeue.clear();
    verdict_->ask = false;
  }

  void Requeue(const AttemptFolder& attempt, ReportFile* report) {
    RequeueRequest request;
    request.mark = attempt.Requeue();
    request.why = verdict_->requeue;
    request.name = start_.Name();
    request.allow_first = !spec_.requeue;
    request.tools = tools_;
    if (const auto asked = RequeueOnce(request); !asked) {
      report->Write(NotRequeuedLine(clock_.WallUs(), StrCat("not started again: ", asked.error().message)));
      report->Sync();
      return;
    }
    // It goes back to the queue; Slurm ends this start of it.
    if (!watch_->told()) supervisor_.Pause(kEndedUs);
  }

  bool TryAgain() {
    if (spec_.resources.elastic()) return false;  // its group has done its restarts itself
    if (stopped_ || verdict_->ending.state != JobState::kFailed || !verdict_->requeue.empty()) return false;
    if (watch_->told() || IsCancelled()) return false;
    const int64_t limit_us = spec_.resources.time_seconds * kSecond;
    if (limit_us > 0 && clock_.MonotonicUs() - began_us_ + kTimeToTry > limit_us) return false;
    return Failures() <= spec_.max_restarts;
  }

  // Attempts of the job so far that failed and were not sent back to the queue.
  int Failures() const {
    int failures = 0;
    for (AgentOptions each = options_; each.attempt >= 1; --each.attempt) {
      const AgentReport report = ParseAgentReport(files_.Read(AttemptFolder(each).Report()).value_or(""));
      if (report.end && report.end->state == JobState::kFailed && report.requeue.empty()) ++failures;
    }
    return failures;
  }

  AgentOptions options_;
  const int64_t grace_us_;
  const Variables variables_;
  const std::vector<std::string> tools_;
  const Clock& clock_;
  Supervisor& supervisor_;
  Courier* const courier_;  // nullptr: the job's folder is seen from everywhere
  const int64_t began_us_ = clock_.MonotonicUs();
  PosixFiles files_;
  SlurmStart start_;
  JobSpec spec_;
  Claim claim_;
  std::optional<OtherNodes> others_;
  std::optional<SlurmWatch> watch_;
  std::optional<SlurmVerdict> verdict_;
  bool stopped_ = false;  // the ranks of the last attempt were told to stop
};

}  // namespace

Result<int> RunSlurmAgent(const AgentOptions& options) {
  PosixClock clock;
  Variables variables = Variables::OfThisProcess();
  SupervisorTimes times;
  times.grace = GraceUs(options, variables);
  std::optional<Courier> courier;
  if (!options.via.empty()) {
    OC_TRY(started, StartOnNode(options));
    courier.emplace(std::move(started));
  }
  OC_TRY(supervisor, Supervisor::Make(clock, times));
  SetDefaultSignals();
  Courier* const carrier = courier ? &*courier : nullptr;
  if (carrier != nullptr) OC_TRY_VOID(carrier->Bring({}, kBringUs, supervisor.get()));
  auto status =
      SlurmAgent(options, times.grace, std::move(variables), clock, supervisor.get(), carrier).Run();
  if (carrier != nullptr) (void)carrier->Finish(kDrainSeconds);
  return status;
}

}  // namespace overcap
