// SPDX-License-Identifier: Apache-2.0
// A job of the engine as its user sees it.
#include <algorithm>

#include "base/text.h"
#include "base/units.h"
#include "daemon/engine.h"

namespace overcap {
namespace {

constexpr int64_t kReadAtOnce = 4 << 20;

std::string GivesWay(const Slot::Preemption& preemption, int64_t now_us) {
  const int64_t left_s = (preemption.stop_us - now_us + 999'999) / 1'000'000;
  return StrCat("told to give way to '", preemption.by, "': ",
                left_s > 0 ? StrCat("it is stopped in ", FormatDuration(left_s)) : "it is being stopped");
}

std::vector<LogFile> RankLogs(const Job& job, const std::string& dir) {
  std::vector<LogFile> logs;
  for (int attempt = 1; attempt <= job.progress.attempt; ++attempt) {
    for (int rank = 0; rank < LogsOf(job.spec.resources); ++rank) {
      logs.push_back({attempt, rank, -1, StrCat(dir, "/attempt-", attempt, "/rank-", rank, ".log")});
    }
  }
  return logs;
}

}  // namespace

JobRecord Engine::RecordOf(const Job& job, bool in_detail) const {
  JobRecord record;
  record.spec = job.spec;
  record.state = job.state;
  record.reason = in_detail ? WaitReason(job) : job.ending.reason;
  record.attempt = job.progress.attempt;
  record.restarts = std::max(0, job.progress.attempt - 1);
  if (job.ended()) record.exit_status = job.ending.exit_status;
  if (job.ended()) record.signal = job.ending.signal;
  if (job.ended()) record.first_failed_rank = job.ending.first_failed_rank;
  record.started_us = job.progress.started_us;
  record.ended_us = job.progress.ended_us;
  if (job.ended()) record.gpu_indices = job.last_gpus;
  for (const Slot& slot : job.slots) {
    record.gpu_indices.insert(record.gpu_indices.end(), slot.gpus.begin(), slot.gpus.end());
  }
  record.partition = job.progress.partition;
  record.preemptions = job.progress.preemptions;
  record.preempted_by = job.progress.preempted_by;
  record.dir = JobDir(job.spec.id);
  if (job.is_array()) record.tasks = CountTasks(job);
  if (!job.is_array()) record.logs = RankLogs(job, record.dir);
  return record;
}

std::string Engine::WaitReason(const Job& job) const {
  if (job.state == JobState::kRunning && !job.is_array() && !job.slots.empty() && job.slots[0].preemption)
    return GivesWay(*job.slots[0].preemption, clock_.WallUs());
  if (job.state != JobState::kQueued) return job.ending.reason;
  std::string why;
  if (CheckReady(job, &why) != Readiness::kReady) return why;
  const std::string explained = queue().Explain(job.key, clock_.WallUs());
  return explained.empty() ? job.ending.reason : explained;  // not in the queue: it is tried again later
}

TaskCounts Engine::CountTasks(const Job& job) const {
  TaskCounts counts;
  counts.total = job.spec.array.Count();
  counts.succeeded = job.array->done.succeeded;
  counts.failed = static_cast<int>(job.array->done.failed.size());
  counts.lost = static_cast<int>(job.array->done.lost.size());
  for (const Slot& slot : job.slots) {
    auto& [offset, reader] = task_readers_[{job.key, slot.slot}];
    auto bytes = files_.ReadRange(AgentFile(job, slot.attempt, slot.slot, ".jsonl"), offset, kReadAtOnce);
    if (bytes) offset += static_cast<int64_t>(reader.Feed(*bytes));
    for (const TaskResult& task : reader.report().tasks) {
      if (task.ending.state == JobState::kSucceeded)
        ++counts.succeeded;
      else if (task.ending.state == JobState::kRunning)
        ++counts.running;
      else
        ++counts.failed;
    }
  }
  const int rest = counts.total - counts.running - counts.succeeded - counts.failed - counts.lost;
  (job.ended() ? counts.not_run : counts.queued) = std::max(0, rest);
  return counts;
}

}  // namespace overcap
