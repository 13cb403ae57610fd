// SPDX-License-Identifier: Apache-2.0
#include "agent/agent.h"

#include <unistd.h>

#include "agent/attempt_run.h"
#include "agent/courier/start_courier.h"
#include "agent/slot_claim.h"
#include "agent/slurm/slurm_agent.h"
#include "base/text.h"

namespace overcap {
namespace {

constexpr int64_t kSyncFromUs = 1'000'000;  // shorter attempts are not worth a sync

}  // namespace

Result<int> RunAgent(const AgentOptions& options) {
  if (options.under == "slurm") return RunSlurmAgent(options);
  PosixClock clock;
  const int64_t begin_us = clock.MonotonicUs();
  std::optional<Courier> courier = CourierFor(options);
  SupervisorTimes times;
  times.grace = options.grace_seconds * 1'000'000;
  OC_TRY(supervisor, Supervisor::Make(clock, times));  // from here on no signal is lost: they were blocked
  SetDefaultSignals();
  setsid();  // fails when it leads a session already, which is as good

  const AttemptFolder attempt(options);
  const Claim claim = OwnClaim();
  OC_TRY(report, ClaimSlot(attempt, claim));
  if (!report) return kAgentNotMine;
  report->Write(ClaimedLine(clock.WallUs(), claim));
  ClusterPart part;
  part.courier = courier ? &*courier : nullptr;
  if (courier) courier->Track({attempt.Report().substr(options.job_dir.size() + 1)});
  Ending ending = AttemptRun(options, attempt, clock, std::move(part), supervisor.get(), &*report).Run();
  if (courier) {
    const int64_t seconds = supervisor->CancelRequested() ? kStopSeconds : kDrainSeconds;
    DrainCourier(&*courier, seconds, clock.WallUs(), &*report, &ending);
  }
  report->Write(EndLine(clock.WallUs(), ending));
  if (clock.MonotonicUs() - begin_us > kSyncFromUs) report->Sync();
  if (courier) (void)courier->Finish(kStopSeconds);
  if (report->error() != 0)
    return Fail(ErrnoError(report->error(), StrCat("cannot write '", attempt.Report(), "'")));
  return kAgentDone;
}

}  // namespace overcap
