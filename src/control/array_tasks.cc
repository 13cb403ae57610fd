// SPDX-License-Identifier: Apache-2.0
#include "control/array_tasks.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <tuple>

#include "base/text.h"
#include "sys/posix_files.h"
#include "sys/proc_table.h"

namespace overcap {
namespace {

std::string AttemptDir(const JobRecord& record) {
  return record.dir + "/attempt-1";  // arrays have one
}

// Whether what it reports as begun still runs.
bool AgentRuns(const AgentReport& report, const JobRecord& record) {
  if (IsFinal(record.state) || report.end || !report.claim) return false;
  const Claim& claim = *report.claim;
  if (!record.spec.store.empty() && claim.boot_id != BootId()) return true;  // on another machine
  return IsAlive({static_cast<pid_t>(claim.pid), static_cast<uint64_t>(claim.start_ticks), claim.boot_id});
}

// "agent-17.jsonl": what the agent of slot 17 reports.
bool IsReport(const std::string& name) {
  int slot = 0, tail = 0;
  return std::sscanf(name.c_str(), "agent-%d.jsonl%n", &slot, &tail) == 1 &&
         tail == static_cast<int>(name.size());
}

// A task that was begun again has lines in several reports: the latest try counts.
void Merge(const ArraySpec& array, TaskResult result, std::vector<TaskResult>* tasks) {
  const int position = array.PositionOf(result.task);
  if (position < 0) return;
  TaskResult& known = (*tasks)[static_cast<size_t>(position)];
  if (std::pair(result.attempt, result.last_us) >= std::pair(known.attempt, known.last_us))
    known = std::move(result);
}

std::vector<TaskResult> Untouched(const JobRecord& record) {
  const ArraySpec& array = record.spec.array;
  const JobState state = IsFinal(record.state) ? JobState::kUnknown : JobState::kQueued;
  std::vector<TaskResult> tasks(static_cast<size_t>(array.Count()));
  for (size_t i = 0; i < tasks.size(); ++i)
    tasks[i] = {array.IndexAt(static_cast<int>(i)), 0, {state, -1, 0, -1, ""}, 0};
  return tasks;
}

int FirstFailed(const std::vector<TaskResult>& tasks, const JobRecord& record) {
  const TaskResult* first = nullptr;
  // Nobody knows when a lost one was lost: any that failed goes before it.
  const auto order = [](const TaskResult& task) {
    return std::pair(task.ending.state == JobState::kLost, task.last_us);
  };
  for (const TaskResult& task : tasks) {
    if (HasFailed(task, record) && (first == nullptr || order(task) < order(*first))) first = &task;
  }
  return first == nullptr ? -1 : first->task;
}

// "task-17.rank-0.log" and "task-17.try-2.rank-0.log".
std::optional<LogFile> ParseTaskLog(const std::string& name) {
  LogFile log;
  int tail = 0;
  const bool first = std::sscanf(name.c_str(), "task-%d.rank-%d.log%n", &log.task, &log.rank, &tail) == 2;
  if (first && tail == static_cast<int>(name.size())) return log;
  const bool later = std::sscanf(name.c_str(), "task-%d.try-%d.rank-%d.log%n", &log.task, &log.attempt,
                                 &log.rank, &tail) == 3;
  if (later && tail == static_cast<int>(name.size())) return log;
  return std::nullopt;
}

}  // namespace

ArrayTasks ReadArrayTasks(const JobRecord& record) {
  ArrayTasks found{Untouched(record), -1};
  if (record.dir.empty()) return found;
  const PosixFiles files;
  const auto names = files.List(AttemptDir(record));
  for (const std::string& name : names ? *names : std::vector<std::string>()) {
    if (!IsReport(name)) continue;
    const auto text = files.Read(StrCat(AttemptDir(record), "/", name));
    if (!text) continue;
    AgentReport report = ParseAgentReport(*text);
    const bool runs = AgentRuns(report, record);
    for (TaskResult& task : report.tasks) {
      if (task.ending.state == JobState::kRunning && !runs) task.ending.state = JobState::kLost;
      Merge(record.spec.array, std::move(task), &found.tasks);
    }
  }
  found.first_failed = FirstFailed(found.tasks, record);
  return found;
}

bool HasFailed(const TaskResult& task, const JobRecord& record) {
  switch (task.ending.state) {
    case JobState::kFailed:
      return true;
    case JobState::kLost:  // while the array runs it may be given to another agent
      return IsFinal(record.state) || record.tasks.lost > 0;
    case JobState::kCancelled:
      return IsFinal(record.state) && record.state != JobState::kCancelled;
    default:
      return false;
  }
}

void AddFailedTasks(JobRecord* record) {
  if (record->spec.array.empty()) return;
  if (!PosixFiles().Exists(record->dir)) return;  // not on this host, or gone
  auto& failed = record->failed_tasks.emplace();
  if (record->tasks.failed + record->tasks.lost == 0) return;
  ArrayTasks read = ReadArrayTasks(*record);
  record->first_failed_task = read.first_failed;
  for (TaskResult& task : read.tasks) {
    if (!HasFailed(task, *record)) continue;
    const bool first = task.task == read.first_failed;
    if (first && failed.size() == kMostFailedTasks) failed.pop_back();  // it is always among them
    if (failed.size() < kMostFailedTasks) failed.push_back(std::move(task));
  }
}

std::string TaskLogPath(const JobRecord& record, int task, int attempt, int rank) {
  const std::string again = attempt > 1 ? StrCat(".try-", attempt) : "";
  return StrCat(AttemptDir(record), "/task-", task, again, ".rank-", rank, ".log");
}

int LastTry(const JobRecord& record, int task) {
  int attempt = 0;
  if (record.dir.empty()) return attempt;
  while (PosixFiles().Exists(TaskLogPath(record, task, attempt + 1, 0))) ++attempt;
  return attempt;
}

std::vector<LogFile> ListTaskLogs(const JobRecord& record) {
  std::vector<LogFile> logs;
  if (record.dir.empty()) return logs;
  const auto names = PosixFiles().List(AttemptDir(record));
  for (const std::string& name : names ? *names : std::vector<std::string>()) {
    auto log = ParseTaskLog(name);
    if (!log) continue;
    log->path = StrCat(AttemptDir(record), "/", name);
    logs.push_back(*std::move(log));
  }
  std::sort(logs.begin(), logs.end(), [](const LogFile& a, const LogFile& b) {
    return std::tuple(a.task, a.attempt, a.rank) < std::tuple(b.task, b.attempt, b.rank);
  });
  return logs;
}

int DefaultTask(const JobRecord& record) {
  if (record.spec.array.empty()) return -1;
  int failed = record.first_failed_task;
  if (!record.failed_tasks && record.tasks.failed + record.tasks.lost > 0)
    failed = ReadArrayTasks(record).first_failed;
  return failed >= 0 ? failed : record.spec.array.IndexAt(0);
}

}  // namespace overcap
