// SPDX-License-Identifier: Apache-2.0
// What became of the tasks of an array, and where they wrote: from the files of the job's folder
// (docs/formats/job-folder.md). The engine keeps counts only.
#pragma once

#include <string>
#include <vector>

#include "model/job_record.h"

namespace overcap {

constexpr size_t kMostFailedTasks = 1000;  // of a record

struct ArrayTasks {
  // Every task, by index. `attempt` 0: not begun; its state is kQueued, or kUnknown once the array has ended.
  std::vector<TaskResult> tasks;
  int first_failed = -1;  // the task that failed first in time; -1: none
};
ArrayTasks ReadArrayTasks(const JobRecord& record);

// Failed, lost for good, or stopped though nobody cancelled the array.
bool HasFailed(const TaskResult& task, const JobRecord& record);

// Fills `failed_tasks` (at most kMostFailedTasks) and `first_failed_task` of an array whose folder is here; a
// plain job stays as it is.
void AddFailedTasks(JobRecord* record);

std::string TaskLogPath(const JobRecord& record, int task, int attempt, int rank);
// The latest try of a task that has a log; 0: none yet.
int LastTry(const JobRecord& record, int task);
// All logs of all tasks that are there, by task, try and rank.
std::vector<LogFile> ListTaskLogs(const JobRecord& record);

// Whose log a user wants who names no task: the one that failed first, else the first one.
int DefaultTask(const JobRecord& record);

}  // namespace overcap
