// SPDX-License-Identifier: Apache-2.0
#include "agent/slurm_agent.h"

#include <algorithm>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/attempt_run.h"
#include "agent/slot_claim.h"
#include "agent/slurm_handle.h"
#include "agent/slurm_start.h"
#include "base/text.h"
#include "model/agent_report.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

// For Slurm: 0 only for what succeeded.
int ExitStatusFor(const Ending& ending) {
  if (ending.state == JobState::kSucceeded) return 0;
  return ending.exit_status > 0 && ending.exit_status < 256 ? ending.exit_status : 1;
}

// One start of a batch script.
class SlurmAgent {
 public:
  SlurmAgent(const AgentOptions& options, const Clock& clock, Supervisor* supervisor)
      : options_(options), clock_(clock), supervisor_(*supervisor), variables_(Variables::OfThisProcess()) {}

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
    claim_ = OwnClaim();
    claim_.slurm_id = start_.job_id;
    claim_.slurm_restart = start_.restart;
    return spec_.array.empty() ? RunJob() : RunTask();
  }

 private:
  Result<int> RunJob() {
    OC_TRY(claimed, ClaimNextAttempt(options_.job_dir, claim_));
    if (!claimed) return kAgentNotMine;
    options_.attempt = claimed->number;
    return RunSlot(-1, &claimed->report);
  }

  // attempt-1 is that of all tasks; each start of a task has a slot of its own.
  Result<int> RunTask() {
    const int position = spec_.array.PositionOf(start_.task);
    if (position < 0)
      return Fail(ErrorCode::kCorrupt, StrCat("job '", spec_.id, "' has no task ", start_.task));
    options_.slot = start_.restart * spec_.array.Count() + position;
    const AttemptFolder attempt(options_);
    OC_TRY_VOID(files_.MakeFolders(attempt.Path()));
    OC_TRY(report, ClaimSlot(attempt, claim_));
    if (!report) return kAgentNotMine;
    return RunSlot(start_.task, &*report);
  }

  Result<int> RunSlot(int task, ReportFile* report) {
    const AttemptFolder attempt(options_);
    report->Write(ClaimedLine(clock_.WallUs(), claim_));
    ClusterPart part;
    part.variables = VariablesOfSlurm(variables_);
    part.task = task;
    const Ending ending = AttemptRun(options_, attempt, clock_, std::move(part), &supervisor_, report).Run();
    report->Write(EndLine(clock_.WallUs(), ending));
    report->Sync();
    if (report->error() != 0)
      return Fail(ErrnoError(report->error(), StrCat("cannot write '", attempt.Report(), "'")));
    return ExitStatusFor(ending);
  }

  AgentOptions options_;
  const Clock& clock_;
  Supervisor& supervisor_;
  Variables variables_;
  PosixFiles files_;
  SlurmStart start_;
  JobSpec spec_;
  Claim claim_;
};

}  // namespace

Result<int> RunSlurmAgent(const AgentOptions& options) {
  PosixClock clock;
  SupervisorTimes times;
  times.grace = options.grace_seconds * 1'000'000;
  OC_TRY(supervisor, Supervisor::Make(clock, times));  // first: from here on no signal is lost
  SetDefaultSignals();
  return SlurmAgent(options, clock, supervisor.get()).Run();
}

}  // namespace overcap
