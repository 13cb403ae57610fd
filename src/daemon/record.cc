// SPDX-License-Identifier: Apache-2.0
// A job of the engine as its user sees it.
#include <algorithm>

#include "base/text.h"
#include "daemon/engine.h"

namespace overcap {
namespace {

constexpr int64_t kReadAtOnce = 4 << 20;

// "task-17.rank-0.log" and "task-17.try-2.rank-0.log".
std::optional<LogFile> ParseTaskLog(const std::string& name) {
  LogFile log;
  int tail = 0;
  int attempt_of_task = 0;
  const bool first = std::sscanf(name.c_str(), "task-%d.rank-%d.log%n", &log.task, &log.rank, &tail) == 2;
  if (first && tail == static_cast<int>(name.size())) return log;
  const bool later = std::sscanf(name.c_str(), "task-%d.try-%d.rank-%d.log%n", &log.task, &attempt_of_task,
                                 &log.rank, &tail) == 3;
  if (later && tail == static_cast<int>(name.size())) return log;
  return std::nullopt;
}

std::vector<LogFile> RankLogs(const Job& job, const std::string& dir) {
  std::vector<LogFile> logs;
  for (int attempt = 1; attempt <= job.progress.attempt; ++attempt) {
    for (int rank = 0; rank < job.spec.resources.world_size(); ++rank) {
      logs.push_back({attempt, rank, -1, StrCat(dir, "/attempt-", attempt, "/rank-", rank, ".log")});
    }
  }
  return logs;
}

std::vector<LogFile> TaskLogs(const Files& files, const std::string& dir) {
  std::vector<LogFile> logs;
  auto names = files.List(dir + "/attempt-1");
  if (!names) return logs;
  for (const std::string& name : *names) {
    auto log = ParseTaskLog(name);
    if (!log) continue;
    log->path = StrCat(dir, "/attempt-1/", name);
    logs.push_back(*std::move(log));
  }
  std::stable_sort(logs.begin(), logs.end(), [](const LogFile& a, const LogFile& b) {
    return std::pair(a.task, a.rank) < std::pair(b.task, b.rank);
  });
  return logs;
}

}  // namespace

JobRecord Engine::RecordOf(const Job& job, bool in_detail) const {
  JobRecord record;
  record.spec = job.spec;
  record.state = job.state;
  record.raw_state = JobStateName(job.state);
  record.reason = in_detail ? WaitReason(job) : job.ending.reason;
  record.attempt = job.progress.attempt;
  record.restarts = std::max(0, job.progress.attempt - 1);
  if (job.ended()) record.exit_status = job.ending.exit_status;
  if (job.ended()) record.signal = job.ending.signal;
  if (job.ended()) record.first_failed_rank = job.ending.first_failed_rank;
  record.started_us = job.progress.started_us;
  record.ended_us = job.progress.ended_us;
  for (const Slot& slot : job.slots) {
    record.gpu_indices.insert(record.gpu_indices.end(), slot.gpus.begin(), slot.gpus.end());
  }
  record.dir = JobDir(job.spec.id);
  if (job.is_array()) record.tasks = CountTasks(job);
  if (!job.is_array()) record.logs = RankLogs(job, record.dir);
  if (job.is_array() && in_detail) record.logs = TaskLogs(files_, record.dir);
  return record;
}

std::string Engine::WaitReason(const Job& job) const {
  if (job.state != JobState::kQueued) return job.ending.reason;
  std::string why;
  if (CheckReady(job, &why) != Readiness::kReady) return why;
  return scheduler_.Explain(job.key, clock_.WallUs());
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
  counts.queued = std::max(0, counts.total - counts.running - counts.succeeded - counts.failed - counts.lost);
  return counts;
}

}  // namespace overcap
