// SPDX-License-Identifier: Apache-2.0
// One limit on what may be in use at the same time: a lab's cap, a user's limit.
#pragma once

#include <cstdint>

#include "sched/pooled/pool_job.h"
#include "sched/pooled/rules.h"

namespace overcap::pooled {

enum class Unit : uint8_t { kGpus, kCpus, kJobs };

inline int AmountOf(const Need& need, Unit unit) {
  return unit == Unit::kGpus ? need.all_gpus() : unit == Unit::kCpus ? need.all_cpus() : 1;
}

struct Budget {
  int limit = kNoLimit;
  Unit unit = Unit::kGpus;
  int lab = -1, account = -1, partition = -1, user = -1, type = -1;  // whose it is; -1: of all
  int running = 0;                                                   // with what is leaving
  int leaving = 0;                                                   // of jobs that were told to go
  int claimed = 0;                                                   // by jobs that wait for those

  bool Allows(int amount) const { return running + claimed + amount <= limit; }
  // What more must go before it is allowed; 0 or less: only those that leave already.
  int Deficit(int amount) const { return running - leaving + claimed + amount - limit; }

  // In one pass: the first job that it keeps from starting is not overtaken by others that would keep it from
  // starting longer (EASY backfill, as with nodes).
  uint64_t held_in = 0;  // the pass; else the rest means nothing
  JobRef first = 0;
  int64_t not_before_s = 0;  // the first one waits so long for nodes anyway
  bool known = false;
  int64_t free_at_s = 0;  // when the first one can have its part, by the time limits of what runs
  int spare = 0;          // what is left beside it then
};

// A budget that holds a job, and in what it counts.
struct Check {
  uint32_t budget = 0;
  Unit unit = Unit::kGpus;
};

}  // namespace overcap::pooled
