// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "model/job_record.h"

namespace overcap {

// "2 GPUs, 2 ranks, 4 CPUs, at most 4h; has GPU 0,1": what a job asked for, with the GPUs that it has or had.
std::string ResourcesLine(const JobRecord& record);

// "0-9: 10 tasks, 8 succeeded, 2 failed": only what there is; "" for a plain job.
std::string TasksLine(const JobRecord& record);

// "4, 17, 42 and 7 more": the tasks of the record that failed, at most `most`; "" when there is none.
std::string FailedTasksLine(const JobRecord& record, size_t most);

// "rank 1 failed first: exit status 1"; of an array "task 4 failed first: ..."; "" when none has.
std::string FailureLine(const JobRecord& record);

// "task 4 failed first: exit status 3 (time limit of 1s reached)"; "" when none has failed.
std::string FirstFailedTaskLine(const JobRecord& record);

// The result of the task that failed first; null when none has, or nobody asked.
const TaskResult* FirstFailedTask(const JobRecord& record);

}  // namespace overcap
