// SPDX-License-Identifier: Apache-2.0
// A job as its user sees it: what `--json` prints and what the engine's socket carries (docs/formats/api.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/agent_report.h"
#include "model/job_spec.h"
#include "model/job_state.h"

namespace overcap {

struct LogFile {
  int attempt = 1;  // arrays: the task's try
  int rank = 0;
  int task = -1;  // -1: not an array
  std::string path;
  bool operator==(const LogFile&) const = default;
};

struct TaskCounts {
  int total = 0, queued = 0, running = 0, succeeded = 0, failed = 0, lost = 0;
  int not_run = 0;  // of an array that has ended: never begun
  bool operator==(const TaskCounts&) const = default;
};

struct JobRecord {
  JobSpec spec;
  JobState state = JobState::kUnknown;
  std::string raw_state;    // the cluster's own word
  std::string cluster_job;  // what the cluster calls it, where that is another word than the id; "": unknown
  std::string node_list;    // "n[1-2]": where it runs, or ran last; "": unknown
  std::string reason;       // why it waits, or why it ended as it did; may be empty
  std::string stale;        // "as of 3m ago: ...": the cluster could not be asked now; "": it could
  int attempt = 0;          // 0: never started
  int restarts = 0;
  int exit_status = -1;  // -1: none yet
  int signal = 0;
  int first_failed_rank = -1;
  int64_t started_us = 0, ended_us = 0;  // 0: not yet
  std::vector<int> gpu_indices;
  std::string partition;     // with a policy: where it runs, or ran last
  int preemptions = 0;       // how often it had to give way
  std::string preempted_by;  // the last one for whom; "": nobody
  TaskCounts tasks;
  std::optional<std::vector<TaskResult>> failed_tasks;  // arrays, in `query`: by index; not all of very many
  int first_failed_task = -1;                           // in time; -1: none, or not asked for
  std::string dir;
  std::vector<LogFile> logs;
  bool operator==(const JobRecord&) const = default;
};

// Where a job runs or ran last; of one that waits, those that it asked for: "short,overcap".
std::string PartitionText(JobState state, const std::string& last, const std::vector<std::string>& asked);

// One task of an array, with the path of its log where there is one; kUnknown is written as "not_run".
std::string TaskToJson(const TaskResult& task, std::string_view log);

// `now_us` is for elapsed_s of a job that still runs.
std::string RecordToJson(const JobRecord& record, int64_t now_us);
Result<JobRecord> RecordFromJson(std::string_view json);

}  // namespace overcap
