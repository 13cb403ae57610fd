// SPDX-License-Identifier: Apache-2.0
#include "sched/pooled/live_pool.h"

#include <algorithm>
#include <numeric>

namespace overcap::pooled {

OpenedPool Open(const LivePool& pool) {
  OpenedPool opened{PooledScheduler(pool.rules), std::vector<JobRef>(pool.running.size()), {}};
  PooledScheduler& scheduler = opened.scheduler;
  for (const LiveAccount& account : pool.accounts) (void)scheduler.AddAccount(account.rule);
  for (const LiveUse& use : pool.uses) scheduler.AddUse(use.account, use.gpu_seconds, use.at_s);
  std::vector<size_t> order(pool.running.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return pool.running[a].started_s < pool.running[b].started_s; });
  for (const size_t at : order) {
    const LiveRun& run = pool.running[at];
    const JobRef ref = scheduler.Adopt(run.job, run.partition, run.shares, run.started_s);
    opened.running[at] = ref;
    scheduler.Checkpointed(ref, run.checkpoint_s);
    if (run.leaving) scheduler.IsLeaving(ref);
  }
  for (const PoolJob& job : pool.waiting) {
    OpenedPool::Queued queued;
    queued.refusal = scheduler.Submit(job, &queued.ref);
    opened.waiting.push_back(queued);
  }
  return opened;
}

}  // namespace overcap::pooled
