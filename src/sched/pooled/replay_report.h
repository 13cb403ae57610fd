// SPDX-License-Identifier: Apache-2.0
// What a replay comes to, in numbers: for everybody, for each lab and each user.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sched/pooled/replay.h"

namespace overcap::pooled {

struct GroupReport {
  std::string name;
  int gpu_cap = 0;  // labs
  int64_t jobs = 0, preemptions = 0;
  double wait_mean_s = 0, wait_p50_s = 0, wait_p90_s = 0, wait_p99_s = 0;  // until the first start
  double slowdown_mean = 0, slowdown_p50 = 0,
         slowdown_p90 = 0;  // (end - submit) / run, runs of at least 10 s
  double gpu_hours = 0, overcap_gpu_hours = 0, lost_gpu_hours = 0;
};

struct ReplayReport {
  GroupReport all;
  std::vector<GroupReport> labs, users;  // as in the policy; most jobs first
  int pool_gpus = 0;
  double utilisation = 0;       // of the pool, from the first submit to the last end
  double use_while_waited = 0;  // of the pool, in steps in which jobs are submitted: without the tail
  double lab_fairness = 0, user_fairness = 0;  // Jain's index of mean slow-downs: 1 is even
  int64_t skipped = 0, never_started = 0, span_s = 0;
  std::vector<std::string> notes;  // skipped jobs by reason, and what else is to be said
};

ReplayReport ReportOf(const Replayed& replayed, const Trace& trace);

}  // namespace overcap::pooled
