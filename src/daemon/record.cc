// SPDX-License-Identifier: Apache-2.0
// A job of the engine as its user sees it.
#include <algorithm>

#include "base/text.h"
#include "base/units.h"
#include "daemon/asker.h"
#include "daemon/engine.h"
#include "model/request_limits.h"
#include "sys/own_host_name.h"

namespace overcap {
namespace {

constexpr int64_t kReadAtOnce = 4 << 20;
constexpr int64_t kMostTallies =
    64 << 20;  // bytes, over all running arrays; with more all counts begin again

std::string GivesWay(const Slot::Preemption& preemption, int64_t now_us) {
  const int64_t left_s = (preemption.stop_us - now_us + 999'999) / 1'000'000;
  return StrCat("told to give way to '", preemption.by, "': ",
                left_s > 0 ? StrCat("it is stopped in ", FormatDuration(left_s)) : "it is being stopped");
}

// The logs of the newest attempts, as many as a record may name.
std::vector<LogFile> RankLogs(const Job& job, const std::string& dir) {
  const int ranks = std::min<int>(LogsOf(job.spec.resources), kMaxLogPaths);
  const int attempts = std::max(1, static_cast<int>(kMaxLogPaths) / std::max(1, ranks));
  std::vector<LogFile> logs;
  for (int attempt = std::max(1, job.progress.attempt - attempts + 1); attempt <= job.progress.attempt;
       ++attempt) {
    for (int rank = 0; rank < ranks; ++rank) {
      logs.push_back({attempt, rank, -1, StrCat(dir, "/attempt-", attempt, "/rank-", rank, ".log")});
    }
  }
  return logs;
}

}  // namespace

JobRecord Engine::ProgressOf(const Job& job) const {
  JobRecord record;
  record.state = job.state;
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
  if (job.is_array()) record.tasks = CountTasks(job);
  return record;
}

JobRecord Engine::RecordOf(const Job& job, bool in_detail) const {
  JobRecord record = ProgressOf(job);
  record.spec = job.spec;
  record.reason = in_detail ? WaitReason(job) : job.ending.reason;
  record.dir = JobDir(job.spec.id);
  if (!job.is_array()) record.logs = RankLogs(job, record.dir);
  return record;
}

JobRecord Engine::PublicRecordOf(const Job& job) const {
  JobRecord record = ProgressOf(job);
  record.spec = PublicJob(job).spec;
  return PublicRecord(record);
}

std::string Engine::WaitReason(const Job& job) const {
  if (job.state == JobState::kRunning && !job.is_array() && !job.slots.empty() && job.slots[0].preemption)
    return GivesWay(*job.slots[0].preemption, clock_.WallUs());
  if (const Slot* slot = job.SlotElsewhere(); slot != nullptr)
    return StrCat("runs on host '", HostNameIn(slot->host), "', not on '", HostNameIn(agents_.CurrentHost()),
                  "'");
  if (job.state != JobState::kQueued) return job.ending.reason;
  std::string why;
  if (CheckReady(job, &why) != Readiness::kReady) return why;
  const std::string explained = queue().Explain(job.key, clock_.WallUs());
  return explained.empty() ? job.ending.reason : explained;  // not in the queue: it is tried again later
}

std::pair<int64_t, ReportTally>& Engine::TaskReader(const Job& job, const Slot& slot) const {
  const std::pair key{job.key, slot.slot};
  if (const auto found = task_readers_.find(key); found != task_readers_.end()) return found->second;
  int64_t bytes = job.spec.array.Count();
  for (const auto& [known, reader] : task_readers_) {
    const Job* other = table_.FindKey(known.first);
    bytes += other == nullptr ? 0 : other->spec.array.Count();
  }
  if (bytes > kMostTallies) task_readers_.clear();
  return task_readers_
      .try_emplace(key, int64_t{0},
                   ReportTally(job.spec.array, ReportDetail::kCounts, BoundsOfReport(job.spec)))
      .first->second;
}

TaskCounts Engine::CountTasks(const Job& job) const {
  TaskCounts counts;
  counts.total = job.spec.array.Count();
  counts.succeeded = job.array->done.succeeded;
  counts.failed = static_cast<int>(job.array->done.failed.size());
  counts.lost = static_cast<int>(job.array->done.lost.size());
  for (const Slot& slot : job.slots) {
    auto& [offset, tally] = TaskReader(job, slot);
    // The rest is counted when the job is next asked for.
    const int64_t most = std::min(kReadAtOnce, kMaxCountedBytes - counted_bytes_);
    const auto read = FeedReport(AgentFile(job, slot.attempt, slot.slot, ".jsonl"), offset, most, &tally);
    if (read) {
      counted_bytes_ += *read - offset;
      offset = *read;
    }
    counts.succeeded += tally.succeeded();
    counts.running += tally.running();
    counts.failed += tally.failed();
  }
  const int rest = counts.total - counts.running - counts.succeeded - counts.failed - counts.lost;
  (job.ended() ? counts.not_run : counts.queued) = std::max(0, rest);
  return counts;
}

}  // namespace overcap
