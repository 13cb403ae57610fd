// SPDX-License-Identifier: Apache-2.0
// A pool as it is at one moment: what the scheduler begins with, and whoever asks what would happen if.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sched/pooled/pool_job.h"
#include "sched/pooled/pooled_scheduler.h"
#include "sched/pooled/rules.h"

namespace overcap::pooled {

// A user in a lab; the number of an account is its position in LivePool::accounts.
struct LiveAccount {
  AccountRule rule;
  std::string lab, user;
};

struct LiveRun {
  PoolJob job;
  int slot = 0;       // arrays: one of its lanes
  int partition = 0;  // in which it runs
  std::vector<GpuShare> shares;
  int64_t started_s = 0;
  int64_t checkpoint_s = 0;  // when it last saved its work; not after its start: never
  bool leaving = false;      // it was told to go
};

// What was used before, by jobs that have ended.
struct LiveUse {
  int account = 0;
  double gpu_seconds = 0;  // with the charge of the partition
  int64_t at_s = 0;
};

struct LivePool {
  Rules rules;
  std::vector<LiveAccount> accounts;
  std::vector<LiveUse> uses;
  std::vector<LiveRun> running;
  std::vector<PoolJob> waiting;  // those that may start as soon as there is room
};

// A scheduler that stands where the pool does: a value, copy it to ask "what if".
struct OpenedPool {
  PooledScheduler scheduler;
  std::vector<JobRef> running;  // as LivePool::running
  struct Queued {
    JobRef ref = 0;
    Refusal refusal = Refusal::kNone;  // else there is no ref
  };
  std::vector<Queued> waiting;  // as LivePool::waiting
};
OpenedPool Open(const LivePool& pool);

}  // namespace overcap::pooled
