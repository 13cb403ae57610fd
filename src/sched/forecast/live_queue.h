// SPDX-License-Identifier: Apache-2.0
// A cluster's queue at one moment, as the pooled scheduler takes it: what runs and since when, what waits and
// in which order, and the rules. Data only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sched/pooled/live_pool.h"
#include "sched/pooled/pool_job.h"
#include "sched/pooled/rules.h"

namespace overcap::forecast {

struct LiveJob {
  pooled::PoolJob told;  // `key` is its position in LiveQueue::jobs; `account` one of LiveQueue::accounts
  std::string user, lab, partition;      // names, for what is known of past runs
  bool runs = false;                     // else it waits
  int in = 0;                            // while it runs: the partition
  std::vector<pooled::GpuShare> shares;  // while it runs: where
  int64_t started_s = 0;                 // while it runs
  int64_t submitted_s = 0;               // 0: not known
  int priority = 0;                      // that its user gave it
  bool named_limit = true;               // else its time limit, if it has one, is its partition's
};

struct LiveQueue {
  pooled::Rules rules;
  std::vector<pooled::AccountRule> accounts;
  std::vector<pooled::LiveUse> uses;  // what was used before
  std::vector<LiveJob> jobs;
  std::vector<int> away;  // nodes that take no jobs
  int64_t now_s = 0;
  size_t target = 0;                 // the job that is asked about; it waits
  std::vector<std::string> assumed;  // what is not known and how it was taken; one line each
};

}  // namespace overcap::forecast
