// SPDX-License-Identifier: Apache-2.0
// The engine's jobs as the pooled scheduler reads them. Pure: the same table and policy give the same pool.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "daemon/job_table.h"
#include "sched/pooled/live_pool.h"
#include "sched/pooled/machine_pool.h"

namespace overcap {

struct LivePoolReading {
  pooled::LivePool pool;
  std::unordered_map<uint64_t, Error>
      refused;  // by key: queued jobs that the policy never lets start, and why
};

// `machine` gets the accounts of all jobs that are there. Waiting are jobs that are queued, not held and wait
// for no other job; an array that may have more lanes stands there once.
LivePoolReading LivePoolOf(const JobTable& table, pooled::MachinePool* machine);

// What jobs that have ended used, for the fair share.
std::vector<pooled::LiveUse> UsesOf(const JobTable& table, pooled::MachinePool* machine);

// Whether every job that this one waits for (--after, resubmit) has ended as it must.
bool WaitsForNobody(const JobTable& table, const Job& job);

}  // namespace overcap
