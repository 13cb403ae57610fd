// SPDX-License-Identifier: Apache-2.0
// What became of jobs, as `sacct` tells it from the accounting database: also of those that the controller
// has forgotten. It lags behind by a second or more.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "clusters/slurm/state_words.h"
#include "clusters/slurm/tres_text.h"

namespace overcap {

// One start of a job: a job that was put back into the queue has several.
struct SacctJob {
  int64_t job_id = 0;        // of its own, also for a task of an array; the array's for tasks that never ran
  int64_t array_job_id = 0;  // 0: no array
  int array_task = -1;       // -1: no single task
  std::string array_tasks;   // "2-9%2": tasks that have not started
  int start = 1;             // 1, 2, ... of the same job, as they followed each other
  bool last = true;          // no later start is known
  std::string raw_state, raw_reason;
  SlurmExit exit;       // of the batch script
  SlurmExit step_exit;  // the highest of its steps
  std::string user, account, partition, qos, node_list, name;
  std::string comment;  // only where the cluster stores comments; else what its submit line says
  int64_t submit_us = 0, eligible_us = 0, start_us = 0, end_us = 0;  // 0: not (yet)
  std::optional<int64_t> time_limit_s;                               // kSlurmUnlimited
  SlurmTres requested, given;
};

struct SacctQuery {
  std::vector<int64_t> jobs = {};  // these; empty: all since `since_us`
  int64_t since_us = 0;            // submitted, running or ended after; must be given when `jobs` is empty
  std::string user = {};           // empty: everybody
};

// Like SqueueCommand(): `mark` for this call alone, variables of tool_variables.h.
std::vector<std::string> SacctCommand(const SacctQuery& query, std::string_view mark);

Result<std::vector<SacctJob>> ParseSacct(std::string_view text, std::string_view mark);

}  // namespace overcap
