// SPDX-License-Identifier: Apache-2.0
#include "control/job_text.h"

#include <algorithm>

#include "base/text.h"
#include "clusters/plan_text.h"
#include "control/array_tasks.h"
#include "control/job_exit_status.h"

namespace overcap {
namespace {

// The engine counts a task that a cancel stopped as failed.
int StoppedTasks(const JobRecord& record) {
  if (record.state != JobState::kCancelled || !record.failed_tasks) return 0;
  const auto& failed = *record.failed_tasks;
  const auto own = std::count_if(failed.begin(), failed.end(), [](const TaskResult& task) {
    return task.ending.state == JobState::kFailed;
  });
  return failed.size() >= kMostFailedTasks ? 0 : std::max(0, record.tasks.failed - static_cast<int>(own));
}

}  // namespace

std::string ResourcesLine(const JobRecord& record) {
  std::string line = ResourcesText(record.spec.resources);
  if (record.gpu_indices.empty()) return line;
  std::vector<std::string> indices;
  for (const int index : record.gpu_indices) indices.push_back(StrCat(index));
  return StrCat(line, IsFinal(record.state) ? "; had GPU " : "; has GPU ", Join(indices, ","));
}

std::string TasksLine(const JobRecord& record) {
  if (record.spec.array.empty()) return {};
  const TaskCounts& tasks = record.tasks;
  const int stopped = StoppedTasks(record);
  const std::pair<int, std::string_view> counts[] = {
      {tasks.queued, "queued"},  {tasks.running, "running"},         {tasks.succeeded, "succeeded"},
      {stopped, "cancelled"},    {tasks.failed - stopped, "failed"}, {tasks.lost, "lost"},
      {tasks.not_run, "not run"}};
  std::string line =
      StrCat(FormatArraySpec(record.spec.array), ": ", tasks.total, tasks.total == 1 ? " task" : " tasks");
  for (const auto& [count, word] : counts) {
    if (count > 0) line += StrCat(", ", count, " ", word);
  }
  return line;
}

std::string FailedTasksLine(const JobRecord& record, size_t most) {
  if (!record.failed_tasks) return {};
  const auto& failed = *record.failed_tasks;
  std::vector<std::string> indices;
  for (size_t i = 0; i < failed.size() && i < most; ++i) indices.push_back(StrCat(failed[i].task));
  std::string line = Join(indices, ", ");
  const int all = std::max(record.tasks.failed + record.tasks.lost - StoppedTasks(record),
                           static_cast<int>(failed.size()));
  const int more = all - static_cast<int>(indices.size());
  return more > 0 && !line.empty() ? StrCat(line, " and ", more, " more") : line;
}

const TaskResult* FirstFailedTask(const JobRecord& record) {
  if (!record.failed_tasks) return nullptr;
  for (const TaskResult& task : *record.failed_tasks) {
    if (task.task == record.first_failed_task) return &task;
  }
  return nullptr;
}

std::string FailureLine(const JobRecord& record) {
  if (!record.spec.array.empty()) return FirstFailedTaskLine(record);
  if (record.first_failed_rank < 0 || record.state == JobState::kCancelled) return {};
  return StrCat("rank ", record.first_failed_rank, " failed first: ", EndingText(record));
}

std::string FirstFailedTaskLine(const JobRecord& record) {
  const TaskResult* task = FirstFailedTask(record);
  if (task == nullptr) return {};
  if (task->ending.state == JobState::kLost)
    return StrCat("task ", task->task, " was lost: its agent was killed");
  JobRecord of_task;
  of_task.state = task->ending.state;
  of_task.exit_status = task->ending.exit_status;
  of_task.signal = task->ending.signal;
  const int rank = record.spec.resources.world_size() > 1 ? task->ending.first_failed_rank : -1;
  return StrCat("task ", task->task, " failed first: ", rank >= 0 ? StrCat("rank ", rank, ", ") : "",
                EndingText(of_task),
                task->ending.reason.empty() ? "" : StrCat(" (", task->ending.reason, ")"));
}

}  // namespace overcap
