// SPDX-License-Identifier: Apache-2.0
// What an agent's files say about the slot that it had: the claim, and the report.
#include <algorithm>
#include <csignal>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/text.h"
#include "base/units.h"
#include "daemon/engine.h"
#include "model/agent_report.h"
#include "model/report_tally.h"
#include "model/request_limits.h"

namespace overcap {
namespace {

// What ended badly after the slot was told to go is run again.
bool WasPreempted(const ReportTally::Task& task, const Slot& slot) {
  return slot.preemption && task.last_us >= slot.preemption->told_us;
}

TaskResults ResultsOf(const ReportTally& report, const ArraySpec& array, const Slot& slot) {
  TaskResults results;
  ForEachTask(array, [&](int position, int index) {
    if (!report.Reported(position)) return;
    const ReportTally::Task& task = report.TaskAt(position);
    if (task.state == JobState::kSucceeded) {
      ++results.succeeded;
    } else if (task.state == JobState::kRunning || WasPreempted(task, slot)) {
      results.lost.push_back(index);
    } else {
      results.failed.emplace_back(index, task.exit_status);
    }
  });
  return results;
}

constexpr size_t kMostReason = 4096;
constexpr int kTimeLimitStatus = 124, kCannotRunStatus = 126,
              kMemoryLimitStatus = 137;  // as agents write them

// How the slot ended, by its report.
struct ReportedEnd {
  std::optional<Ending> end;
  int64_t ended_us = 0;
};

// Whether a slot can end in this state. A job goes back to the queue at its time limit, or because its script
// asks for it, only if its user allowed that.
bool CanEndIn(JobState state, const JobSpec& spec) {
  const bool may_go_back = spec.requeue_on_timeout || (spec.batch && spec.requeue && spec.array.empty());
  return IsFinal(state) || (state == JobState::kPreempted && may_go_back);
}

// A user can forge the report of a job, so impossible states are dropped and long reasons are cut.
ReportedEnd BelievableEnd(const ReportTally& tally, const JobSpec& spec) {
  ReportedEnd report{tally.end(), tally.ended_us()};
  if (!spec.owner.told() || !report.end) return report;
  if (report.end->reason.size() > kMostReason) report.end->reason.resize(kMostReason);
  if (!CanEndIn(report.end->state, spec)) report.end.reset();
  return report;
}

constexpr int64_t kReportPiece = 1 << 20;

}  // namespace

std::string Engine::AgentFile(const Job& job, int attempt, int slot, std::string_view suffix) const {
  return StrCat(JobDir(job.spec.id), "/attempt-", attempt, "/agent-", slot, suffix);
}

std::string Engine::ClaimFile(const Job& job, int attempt, int slot) const {
  if (!job.spec.owner.told()) return AgentFile(job, attempt, slot, ".claim");
  return StrCat(root_, "/claims/", job.spec.id, "/", attempt, ".", slot);
}

// Takes the slot's claim so that no agent can come late; false when somebody has it. An error says nothing
// about it.
Result<bool> Engine::ClaimForNobody(const Job& job, const Slot& slot) {
  const std::string file = ClaimFile(job, slot.attempt, slot.slot);
  if (files_.Exists(file)) return false;  // a full disk may have no room even for a claim that comes second
  OC_TRY_VOID(files_.MakeFolders(file.substr(0, file.rfind('/'))));
  auto made = files_.CreateExclusive(file, ClaimToJson({0, 0, "", "daemon"}) + "\n");
  if (made) return true;
  if (made.error().code == ErrorCode::kConflict) return false;
  return Fail(made.error());
}

std::optional<ProcessIdentity> Engine::LiveAgent(const Job& job, const Slot& slot) const {
  const auto text = files_.Read(ClaimFile(job, slot.attempt, slot.slot));
  const auto claim = text ? ClaimFromJson(*text) : Result<Claim>(Fail(text.error()));
  if (!claim || claim->by != "agent") return std::nullopt;
  ProcessIdentity agent{static_cast<pid_t>(claim->pid), static_cast<uint64_t>(claim->start_ticks),
                        claim->boot_id};
  if (!agents_.IsAlive(agent)) return std::nullopt;
  return agent;
}

Result<int64_t> Engine::FeedReport(const std::string& path, int64_t offset, int64_t most,
                                   ReportTally* report) const {
  while (most > 0) {
    const int64_t wanted = std::min(most, kReportPiece);
    OC_TRY(bytes, files_.ReadRange(path, offset, wanted));
    auto taken = static_cast<int64_t>(report->Feed(bytes));
    const bool more = std::ssize(bytes) == wanted;
    if (taken == 0 && bytes.size() > kMaxReportLine)
      taken = std::ssize(bytes);  // no agent writes such a line
    if (taken == 0) break;
    offset += taken;
    most -= taken;
    if (!more) break;
  }
  return offset;
}

Result<Engine::SlotOutcome> Engine::ReadOutcome(const Job& job, const Slot& slot) {
  SlotOutcome outcome;
  // A claim that a power cut took away proves nothing: only in the same boot does no claim mean that nothing
  // ran.
  const bool same_boot = slot.boot_id == agents_.CurrentBoot();
  OC_TRY(ours, ClaimForNobody(job, slot));
  OC_TRY(text_of_claim, files_.Read(ClaimFile(job, slot.attempt, slot.slot)));
  const auto claim = ClaimFromJson(text_of_claim);  // unreadable after a power cut: it was somebody's
  if (same_boot && (ours || (claim && claim->by == "daemon"))) {
    outcome.tasks.lost = slot.retry_tasks;
    outcome.ending.state = JobState::kQueued;
    const auto why = start_errors_.find(job.key);
    const std::string log =
        job.spec.owner.told() ? AreaOf(job.spec.owner) + "/agent.log" : root_ + "/daemon.log";
    outcome.ending.reason = why == start_errors_.end()
                                ? StrCat("its agent ended before it began; see ", log)
                                : StrCat("its agent could not be started: ", why->second);
    return outcome;
  }
  const bool owned = job.spec.owner.told();
  const Agents::SlotName name{job.spec.id, slot.attempt, slot.slot, job.spec.owner.uid};
  const auto deadline = deadlines_.find({job.key, slot.attempt, slot.slot});
  const bool overdue = deadline != deadlines_.end() && deadline->second.passed;
  const bool out_of_memory = owned && agents_.RanOutOfMemory(name);
  // Whatever a user's report says, nothing of the job may live on.
  if (owned || overdue) agents_.KillStrays(name);
  ReportTally tally(job.spec.array, ReportDetail::kTasks, BoundsOfReport(job.spec));
  const auto read = FeedReport(AgentFile(job, slot.attempt, slot.slot, ".jsonl"), 0,
                               owned ? kMaxReportBytes : INT64_MAX, &tally);
  // What is wrong with the folder of another user is that user's loss, and holds up nobody.
  if (!read && !owned && read.error().code != ErrorCode::kNotFound) return Fail(read.error());
  const ReportedEnd report = BelievableEnd(tally, job.spec);
  outcome.tasks = ResultsOf(tally, job.spec.array, slot);
  for (const int task : slot.retry_tasks) {
    const int position = tally.PositionOf(task);
    if (position < 0 || !tally.Reported(position)) outcome.tasks.lost.push_back(task);
  }
  if (overdue) {
    outcome.ending = {JobState::kFailed, kTimeLimitStatus, 0, -1,
                      StrCat("time limit of ", FormatDuration(TimeLimitOf(job, slot)),
                             " reached; its agent had not ended it")};
    return outcome;
  }
  const bool killed =
      !report.end || (report.end->state == JobState::kFailed && report.end->signal == SIGKILL);
  if (out_of_memory && killed) {
    outcome.ending = {JobState::kFailed, kMemoryLimitStatus, SIGKILL,
                      report.end ? report.end->first_failed_rank : -1, "memory limit reached"};
    outcome.ended_us = report.ended_us;
    return outcome;
  }
  if (report.end) {
    outcome.ending = *report.end;
    outcome.ended_us = report.ended_us;
    return outcome;
  }
  if (owned && same_boot && !read && read.error().code == ErrorCode::kNotFound) {
    // The process that becomes the user makes the claim; the agent, which first of all begins a report, never
    // ran.
    outcome.ending = {
        JobState::kFailed, kCannotRunStatus, 0, -1,
        StrCat("its agent could not begin, perhaps for a limit of the submitting shell (ulimit); see ",
               AreaOf(job.spec.owner), "/agent.log")};
    return outcome;
  }
  if (job.is_array() && !same_boot) {
    OC_TRY(begun, PerhapsBegun(job));
    outcome.tasks.lost.insert(outcome.tasks.lost.end(), begun.begin(), begun.end());
    auto raised = RaiseTaskCounter(job, true);
    if (!raised && !owned) return Fail(raised.error());
  } else if (job.is_array() && read) {
    // Its agent was killed before it could sync the report, which alone says which tasks it began.
    const auto file = files_.OpenAppend(AgentFile(job, slot.attempt, slot.slot, ".jsonl"));
    const auto synced = file ? (*file)->Sync() : Result<void>(Fail(file.error()));
    if (!synced && !owned) return Fail(synced.error());
  }
  outcome.ending.state = JobState::kLost;
  outcome.ending.reason = "its agent was killed or the machine went down";
  if (!owned) agents_.KillStrays(name);
  return outcome;
}

}  // namespace overcap
