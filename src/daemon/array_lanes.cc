// SPDX-License-Identifier: Apache-2.0
// How the engine gives an array its lanes, and finds tasks that nobody has accounted for.
#include <algorithm>
#include <cstdint>

#include "daemon/engine.h"
#include "model/report_tally.h"
#include "model/request_limits.h"

namespace overcap {

std::string Engine::TaskCounterPath(const Job& job) const {
  return JobDir(job.spec.id) + "/attempt-1/next-task";
}

int64_t Engine::ReadTaskCounter(const Job& job) const {
  auto bytes = files_.ReadRange(TaskCounterPath(job), 0, 8);
  int64_t next = 0;
  if (!bytes || bytes->size() != 8) return 0;
  for (int i = 7; i >= 0; --i)
    next = (next << 8) | static_cast<unsigned char>((*bytes)[static_cast<size_t>(i)]);
  return std::max<int64_t>(0, next);
}

int Engine::TasksLeft(const Job& job) const {
  const int64_t left = job.spec.array.Count() - ReadTaskCounter(job);
  return static_cast<int>(std::max<int64_t>(0, left)) + (job.array->retry.empty() ? 0 : 1);
}

// How many more lanes a running array may take.
void Engine::UpdateArrayDemand(Job& job) {
  if (!job.is_array() || job.state != JobState::kRunning || job.progress.cancel_requested) return;
  const bool no_more = job.array->broken || (job.array->drained && job.array->retry.empty());
  // While another host runs a part of it, no lane is added here: two hosts may not see the same task counter.
  int wanted = no_more || job.SlotElsewhere() != nullptr ? 0 : TasksLeft(job);
  if (job.spec.array.limit > 0)
    wanted = std::min(wanted, job.spec.array.limit - static_cast<int>(job.slots.size()));
  queue().UpdateSlots(job.key, std::max(0, wanted));
}

Engine::Reported Engine::ReportedTasks(const Job& job) const {
  ReportBounds bounds = BoundsOfReport(job.spec);
  if (job.spec.owner.told()) bounds.whole_bytes = kMaxReportsBytes;
  int64_t left = bounds.whole_bytes;
  ReportTally tally(job.spec.array, ReportDetail::kCounts, bounds);
  Reported reported;
  for (int slot = 0; slot < job.progress.next_slot && left > 0; ++slot) {
    const auto read = FeedReport(AgentFile(job, 1, slot, ".jsonl"), 0, left, &tally);
    if (read) left -= *read;
    if (!read && read.error().code != ErrorCode::kNotFound) reported.problem = read.error();
  }
  if (left <= 0) reported.problem = Error{ErrorCode::kUnavailable, "the reports are too long", ""};
  reported.tasks.resize(static_cast<size_t>(job.spec.array.Count()));
  for (int position = 0; position < std::ssize(reported.tasks); ++position)
    reported.tasks[static_cast<size_t>(position)] = tally.Reported(position);
  return reported;
}

Result<std::vector<int>> Engine::UnreportedTasks(const Job& job) const {
  const TaskResults& done = job.array->done;
  const int total = job.spec.array.Count();
  std::vector<int> unreported;
  if (done.succeeded + static_cast<int>(done.failed.size() + done.lost.size()) >= total) return unreported;
  const Reported reported = ReportedTasks(job);
  if (reported.problem) {
    if (job.spec.owner.told()) return unreported;
    return Fail(*reported.problem);
  }
  ForEachTask(job.spec.array, [&](int position, int index) {
    if (!reported.tasks[static_cast<size_t>(position)]) unreported.push_back(index);
  });
  return unreported;
}

// The counter of tasks is not synced, the reports of their starts are: after a power cut it may be behind
// them. Then no agent lives that could count on.
Result<void> Engine::RepairTaskCounter(const Job& job) {
  if (job.progress.attempt == 0) return {};
  const std::vector<bool> reported = ReportedTasks(job).tasks;
  const int64_t next = reported.rend() - std::find(reported.rbegin(), reported.rend(), true);
  if (next <= ReadTaskCounter(job)) return {};
  std::string bytes;
  for (int shift = 0; shift < 64; shift += 8) bytes += static_cast<char>((next >> shift) & 0xFF);
  OC_TRY_VOID(files_.MakeFolders(JobDir(job.spec.id) + "/attempt-1"));
  return files_.WriteAtomic(TaskCounterPath(job), bytes, false);
}

}  // namespace overcap
