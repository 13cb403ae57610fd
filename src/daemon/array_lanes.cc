// SPDX-License-Identifier: Apache-2.0
// How the engine gives an array its lanes, and finds tasks that nobody has accounted for.
#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "daemon/engine.h"
#include "model/report_tally.h"
#include "model/request_limits.h"

namespace overcap {

std::string Engine::TaskCounterPath(const Job& job) const {
  return JobDir(job.spec.id) + "/attempt-1/next-task";
}

Engine::TaskCounter Engine::ReadTaskCounter(const Job& job) const {
  const std::string bytes = files_.ReadRange(TaskCounterPath(job), 0, 16).value_or("");
  const auto number = [&](size_t at) {
    int64_t value = 0;
    if (bytes.size() < at + 8) return value;  // an older program's has the first only
    for (size_t i = 8; i > 0; --i) value = (value << 8) | static_cast<unsigned char>(bytes[at + i - 1]);
    return std::clamp<int64_t>(value, 0, job.spec.array.Count());
  };
  return {number(0), number(8)};
}

int Engine::TasksLeft(const Job& job) const {
  const int64_t left = job.spec.array.Count() - ReadTaskCounter(job).next;
  return static_cast<int>(std::max<int64_t>(0, left)) + (job.array->retry.empty() ? 0 : 1);
}

// How many more lanes a running array may take.
void Engine::UpdateArrayDemand(Job& job) {
  if (!job.is_array() || job.state != JobState::kRunning || job.progress.cancel_requested) return;
  const bool no_more = job.array->broken || (job.array->drained && job.array->retry.empty());
  // While another host runs a part of it, no lane is added here: two hosts may not see the same task counter.
  // Nor while a slot of an earlier boot is open, for the counter may be behind what has begun.
  const bool unsure = job.SlotElsewhere() != nullptr ||
                      std::any_of(job.slots.begin(), job.slots.end(),
                                  [&](const Slot& slot) { return slot.boot_id != agents_.CurrentBoot(); });
  int wanted = no_more || unsure ? 0 : TasksLeft(job);
  if (job.spec.array.limit > 0)
    wanted = std::min(wanted, job.spec.array.limit - static_cast<int>(job.slots.size()));
  queue().UpdateSlots(job.key, std::max(0, wanted));
}

Engine::Begun Engine::BegunTasks(const Job& job) const {
  ReportBounds bounds = BoundsOfReport(job.spec);
  if (job.spec.owner.told()) bounds.whole_bytes = kMaxReportsBytes;
  int64_t left = bounds.whole_bytes;
  ReportTally tally(job.spec.array, ReportDetail::kCounts, bounds);
  Begun begun;
  for (int slot = 0; slot < job.progress.next_slot && left > 0; ++slot) {
    const auto read = FeedReport(AgentFile(job, 1, slot, ".jsonl"), 0, left, &tally);
    if (read) left -= *read;
    if (!read && read.error().code != ErrorCode::kNotFound) begun.problem = read.error();
  }
  if (left <= 0) begun.problem = Error{ErrorCode::kUnavailable, "the reports are too long", ""};
  std::set<int> lost(job.array->done.lost.begin(), job.array->done.lost.end());
  lost.insert(job.array->retry.begin(), job.array->retry.end());
  for (const Slot& slot : job.slots) lost.insert(slot.retry_tasks.begin(), slot.retry_tasks.end());
  begun.tasks.resize(static_cast<size_t>(job.spec.array.Count()));
  ForEachTask(job.spec.array, [&](int position, int index) {
    begun.tasks[static_cast<size_t>(position)] = tally.Reported(position) || lost.contains(index);
  });
  return begun;
}

Result<std::vector<int>> Engine::TasksNotBegun(const Job& job, int64_t until) const {
  std::vector<int> tasks;
  if (until == 0) return tasks;
  const Begun begun = BegunTasks(job);
  if (begun.problem) {
    if (job.spec.owner.told()) return tasks;
    return Fail(*begun.problem);
  }
  ForEachTask(job.spec.array, [&](int position, int index) {
    if (position < until && !begun.tasks[static_cast<size_t>(position)]) tasks.push_back(index);
  });
  return tasks;
}

Result<std::vector<int>> Engine::UnreportedTasks(const Job& job) const {
  const TaskResults& done = job.array->done;
  const int total = job.spec.array.Count();
  const bool all = done.succeeded + static_cast<int>(done.failed.size() + done.lost.size()) >= total;
  return TasksNotBegun(job, all ? 0 : total);
}

// While a lane lives on another host the counter is not this host's alone.
Result<std::vector<int>> Engine::PerhapsBegun(const Job& job) const {
  return TasksNotBegun(job, job.SlotElsewhere() != nullptr ? 0 : ReadTaskCounter(job).may_have_begun);
}

Result<void> Engine::RaiseTaskCounter(const Job& job, bool power_cut) {
  if (job.progress.attempt == 0) return {};
  const std::vector<bool> begun = BegunTasks(job).tasks;
  const TaskCounter counter = ReadTaskCounter(job);
  const int64_t next = std::max<int64_t>(power_cut ? counter.may_have_begun : 0,
                                         begun.rend() - std::find(begun.rbegin(), begun.rend(), true));
  if (next <= counter.next) return {};
  std::string bytes;
  for (const int64_t number : {next, counter.may_have_begun, int64_t{0}}) {
    for (int shift = 0; shift < 64; shift += 8) bytes += static_cast<char>((number >> shift) & 0xFF);
  }
  OC_TRY_VOID(files_.MakeFolders(JobDir(job.spec.id) + "/attempt-1"));
  return files_.WriteAtomic(TaskCounterPath(job), bytes, false);
}

}  // namespace overcap
