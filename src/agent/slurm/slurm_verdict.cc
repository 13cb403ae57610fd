// SPDX-License-Identifier: Apache-2.0
#include "agent/slurm/slurm_verdict.h"

#include <algorithm>
#include <csignal>

#include "agent/ending.h"
#include "base/text.h"
#include "base/units.h"

namespace overcap {
namespace {

constexpr int64_t kSecond = 1'000'000;
constexpr int64_t kNearlyUs = 10 * kSecond;  // before the time limit
constexpr int64_t kReserveUs = 3 * kSecond;  // to say how it ended and to ask for another start
constexpr int64_t kTooSoonUs = 60 * kSecond;
constexpr size_t kInVain = 2;  // attempts before this one
constexpr char kPreempted[] = "preempted", kTimeLimit[] = "time limit", kNodeFailed[] = "node failed";

// Slurm counts whole minutes.
int64_t LimitUs(int64_t seconds) {
  return (seconds + 59) / 60 * 60 * kSecond;
}

// The warning comes so long before the limit.
int64_t LeadUs(const JobSpec& spec) {
  constexpr int64_t kShortest = 10, kLongest = 60;
  if (spec.warn_seconds > 0) return spec.warn_seconds * kSecond;
  if (spec.resources.time_seconds <= 0) return kLongest * kSecond;
  return std::clamp(spec.resources.time_seconds / 10, kShortest, kLongest) * kSecond;
}

bool SlurmStartsItAgain(const StopEvidence& seen) {
  return seen.replaced || (seen.facts && seen.facts->restarts > seen.restart);
}

bool TimeIsOver(const JobSpec& spec, const StopEvidence& seen) {
  if (seen.facts && seen.facts->start_us > 0) {
    const int64_t limit_s = seen.facts->limit_seconds;
    return limit_s > 0 && seen.now_us >= seen.facts->start_us + limit_s * kSecond - kNearlyUs;
  }
  const int64_t limit_s = spec.resources.time_seconds;
  return limit_s > 0 && seen.now_us >= seen.begin_us + LimitUs(limit_s) - kNearlyUs;
}

Ending TimeLimit(const JobSpec& spec, const StopEvidence& seen) {
  int64_t limit_s = spec.resources.time_seconds;
  if (limit_s == 0 && seen.facts) limit_s = seen.facts->limit_seconds;
  const std::string which = limit_s > 0 ? StrCat(" of ", FormatDuration(limit_s)) : "";
  return {JobState::kFailed, kTimeLimitStatus, 0, -1, StrCat("time limit", which, " reached")};
}

Ending As(JobState state, Ending ranks, std::string reason) {
  ranks.state = state;
  ranks.first_failed_rank = -1;
  ranks.reason = std::move(reason);
  return ranks;
}

SlurmVerdict Preempted(const JobSpec& spec, const StopEvidence& seen) {
  SlurmVerdict verdict{As(JobState::kPreempted, seen.ranks, "preempted"), "", false};
  if (SlurmStartsItAgain(seen)) {
    verdict.requeue = kPreempted;
  } else if (spec.requeue) {
    verdict.requeue = kPreempted, verdict.ask = true;
  }
  return verdict;
}

SlurmVerdict OutOfTime(const JobSpec& spec, const StopEvidence& seen) {
  SlurmVerdict verdict{TimeLimit(spec, seen), "", false};
  if (spec.requeue_on_timeout) verdict.requeue = kTimeLimit, verdict.ask = true;
  return verdict;
}

SlurmVerdict NodeFailed(const JobSpec& spec, const StopEvidence& seen) {
  SlurmVerdict verdict{seen.ranks, "", false};
  if (!spec.requeue && !SlurmStartsItAgain(seen)) return verdict;
  verdict.requeue = kNodeFailed;
  verdict.ask = !SlurmStartsItAgain(seen);
  return verdict;
}

// Told to stop, and not by a cancel.json.
SlurmVerdict Stopped(const JobSpec& spec, const StopEvidence& seen) {
  if (SlurmStartsItAgain(seen)) return Preempted(spec, seen);
  if (seen.before_limit) return OutOfTime(spec, seen);
  if (seen.facts && seen.facts->preempted) return Preempted(spec, seen);
  if (TimeIsOver(spec, seen)) return OutOfTime(spec, seen);
  // Slurm ends it, and not to make room: somebody has said scancel.
  if (seen.facts && seen.facts->state != "RUNNING" && seen.facts->state != "SUSPENDED")
    return {As(JobState::kCancelled, seen.ranks, "cancelled in Slurm"), "", false};
  return Preempted(spec, seen);
}

}  // namespace

bool EndedLikeStopped(const Ending& ranks) {
  return ranks.state == JobState::kFailed &&
         (ranks.signal == SIGTERM || ranks.signal == SIGKILL || ranks.exit_status == 128 + SIGTERM);
}

SlurmVerdict JudgeEnd(const JobSpec& spec, const StopEvidence& seen) {
  const JobState state = seen.ranks.state;
  const bool stopped = state == JobState::kCancelled || (seen.told && EndedLikeStopped(seen.ranks));
  if (stopped && seen.cancel) return {As(JobState::kCancelled, seen.ranks, *seen.cancel), "", false};
  if (stopped) return Stopped(spec, seen);
  if (state == JobState::kLost) return NodeFailed(spec, seen);
  // They ended by themselves. In its grace time Slurm tells the steps only, and ranks that are told to stop
  // may end as they like.
  const bool preempted = SlurmStartsItAgain(seen) || (seen.facts && seen.facts->preempted);
  if (preempted && (spec.requeue || SlurmStartsItAgain(seen)) && !(seen.cancel && !SlurmStartsItAgain(seen)))
    return Preempted(spec, seen);
  // A warning lets a program end well with work undone only by another status than 0.
  if (seen.warned && state == JobState::kFailed && spec.requeue_on_timeout && !seen.cancel)
    return OutOfTime(spec, seen);
  return {seen.ranks, "", false};
}

bool WantsFacts(const JobSpec& spec, const StopEvidence& seen) {
  if (seen.facts || seen.cancel) return false;
  if (seen.ranks.state == JobState::kCancelled || seen.told) return true;
  return spec.requeue &&
         (seen.ranks.state != JobState::kSucceeded || seen.warned || spec.batch || spec.resources.nodes > 1);
}

int64_t StopBeforeLimitUs(const JobSpec& spec, const std::optional<SlurmJobFacts>& facts,
                          int64_t known_end_us, int64_t grace_us) {
  if (!spec.requeue_on_timeout) return 0;
  int64_t end_us = known_end_us;
  if (facts && facts->start_us > 0 && facts->limit_seconds > 0)
    end_us = facts->start_us + facts->limit_seconds * kSecond;
  // Half of the lead is theirs, to save and end by themselves.
  return end_us > 0 ? end_us - std::min(grace_us, LeadUs(spec) / 2) - kReserveUs : 0;
}

bool EndsTooSoon(const std::vector<AgentReport>& latest, const std::string& why, int64_t lasted_us) {
  if (lasted_us >= kTooSoonUs || latest.size() < kInVain) return false;
  return std::all_of(latest.begin(), latest.begin() + kInVain, [&](const AgentReport& report) {
    const bool soon = !report.started || report.ended_us - report.started_us < kTooSoonUs;
    return report.requeue == why && soon;
  });
}

}  // namespace overcap
