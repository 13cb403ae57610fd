// SPDX-License-Identifier: Apache-2.0
// What an agent's files say about the slot that it had: the claim, and the report.
#include <algorithm>

#include "base/text.h"
#include "daemon/engine.h"
#include "model/agent_report.h"

namespace overcap {
namespace {

TaskResults ResultsOf(const AgentReport& report) {
  TaskResults results;
  for (const TaskResult& task : report.tasks) {
    if (task.ending.state == JobState::kSucceeded) {
      ++results.succeeded;
    } else if (task.ending.state == JobState::kRunning) {
      results.lost.push_back(task.task);
    } else {
      results.failed.emplace_back(task.task, task.ending.exit_status);
    }
  }
  return results;
}

}  // namespace

std::string Engine::AgentFile(const Job& job, int attempt, int slot, std::string_view suffix) const {
  return StrCat(JobDir(job.spec.id), "/attempt-", attempt, "/agent-", slot, suffix);
}

// Takes the slot's claim so that no agent can come late; false when somebody has it. An error says nothing
// about it.
Result<bool> Engine::ClaimForNobody(const Job& job, const Slot& slot) {
  OC_TRY_VOID(files_.MakeFolders(StrCat(JobDir(job.spec.id), "/attempt-", slot.attempt)));
  auto made = files_.CreateExclusive(AgentFile(job, slot.attempt, slot.slot, ".claim"),
                                     ClaimToJson({0, 0, "", "daemon"}) + "\n");
  if (made) return true;
  if (made.error().code == ErrorCode::kConflict) return false;
  return Fail(made.error());
}

std::optional<ProcessIdentity> Engine::LiveAgent(const Job& job, const Slot& slot) const {
  const auto text = files_.Read(AgentFile(job, slot.attempt, slot.slot, ".claim"));
  const auto claim = text ? ClaimFromJson(*text) : Result<Claim>(Fail(text.error()));
  if (!claim || claim->by != "agent") return std::nullopt;
  ProcessIdentity agent{static_cast<pid_t>(claim->pid), static_cast<uint64_t>(claim->start_ticks),
                        claim->boot_id};
  if (!agents_.IsAlive(agent)) return std::nullopt;
  return agent;
}

Result<Engine::SlotOutcome> Engine::ReadOutcome(const Job& job, const Slot& slot) {
  SlotOutcome outcome;
  // A claim that a power cut took away proves nothing: only in the same boot does no claim mean that nothing
  // ran.
  const bool same_boot = slot.boot_id == agents_.CurrentBoot();
  OC_TRY(ours, ClaimForNobody(job, slot));
  OC_TRY(text_of_claim, files_.Read(AgentFile(job, slot.attempt, slot.slot, ".claim")));
  const auto claim = ClaimFromJson(text_of_claim);  // unreadable after a power cut: it was somebody's
  if (same_boot && (ours || (claim && claim->by == "daemon"))) {
    outcome.tasks.lost = slot.retry_tasks;
    outcome.ending.state = JobState::kQueued;
    outcome.ending.reason = StrCat("its agent ended before it began; see ", root_, "/daemon.log");
    return outcome;
  }
  auto text = files_.Read(AgentFile(job, slot.attempt, slot.slot, ".jsonl"));
  if (!text && text.error().code != ErrorCode::kNotFound) return Fail(text.error());
  const AgentReport report = ParseAgentReport(text ? *text : "");
  outcome.tasks = ResultsOf(report);
  for (const int task : slot.retry_tasks) {
    const auto same = [task](const TaskResult& result) { return result.task == task; };
    if (std::none_of(report.tasks.begin(), report.tasks.end(), same)) outcome.tasks.lost.push_back(task);
  }
  if (report.end) {
    outcome.ending = *report.end;
    outcome.ended_us = report.ended_us;
    return outcome;
  }
  outcome.ending.state = JobState::kLost;
  outcome.ending.reason = "its agent was killed or the machine went down";
  agents_.KillStrays({job.spec.id, slot.attempt, slot.slot});
  return outcome;
}

}  // namespace overcap
