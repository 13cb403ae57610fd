// SPDX-License-Identifier: Apache-2.0
// The engine's queue under a policy: jobs of the table go into the pooled scheduler, its decisions come back
// as allocations of this machine. An array stands in the scheduler with one lane more than it has.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "daemon/job_table.h"
#include "sched/job_queue.h"
#include "sched/pooled/machine_pool.h"
#include "sched/pooled/pooled_scheduler.h"
#include "sys/clock.h"

namespace overcap {

class PolicyQueue : public JobQueue {
 public:
  // `table` outlives it. Knows of nothing that runs yet: Adopt() and Enqueue() say it.
  PolicyQueue(const JobTable& table, const Clock& clock, pooled::MachinePool pool, const Machine& machine);

  // Whether the policy could ever let it start; kUsage and kDenied as MachinePool::Take(), and what the
  // scheduler refuses. Changes nothing that matters.
  Result<void> Check(const JobSpec& spec);
  // The limit in seconds of what runs in this partition without one of its own; 0: none.
  int64_t TimeLimitIn(const std::string& partition) const;
  // A run has saved its work.
  void Checkpointed(uint64_t key, int slot, int64_t at_us);

  void Enqueue(const QueuedJob& job) override;
  void Remove(uint64_t key) override;
  void UpdateSlots(uint64_t key, int slots_wanted) override;
  void Adopt(const Running& running) override;
  void Release(uint64_t key, int slot) override;
  void Undo(const Start& start) override;
  std::vector<Start> Pass(int64_t now_us) override;
  std::vector<Preempt> TakePreempts() override;
  int64_t WakeAtUs() const override;
  std::string Explain(uint64_t key, int64_t now_us) const override;
  int FreeGpus() const override { return static_cast<int>(scheduler_.nodes().free_gpus()); }

  const pooled::MachinePool& pool() const { return pool_; }
  const pooled::PooledScheduler& scheduler() const { return scheduler_; }

 private:
  struct Waiting {
    std::optional<pooled::JobRef> ref;  // nothing: it wants no more, or the policy refuses it
    int wanted = 0, next_slot = 0;
    std::string refused;  // why the policy does
  };
  struct Run {
    pooled::JobRef ref = 0;
    std::vector<int> cpus;
  };

  int64_t NowS() const { return clock_.WallUs() / 1'000'000; }
  void AddAccounts();
  void Offer(uint64_t key, Waiting* waiting);  // stands in the scheduler's queue from now on
  void Withdraw(Waiting* waiting);
  // Why the scheduler does not take a job, in words.
  Error RefusalError(pooled::Refusal refusal, const pooled::PoolJob& job) const;
  Start Begin(const pooled::Action& action);
  std::vector<int> TakeCpus(int count);

  const JobTable& table_;
  const Clock& clock_;
  pooled::MachinePool pool_;
  pooled::PooledScheduler scheduler_;
  size_t accounts_ = 0;  // of the pool that the scheduler knows
  std::set<int> free_cpus_;
  std::unordered_map<uint64_t, Waiting> waiting_;
  std::map<std::pair<uint64_t, int>, Run> runs_;
  std::unordered_map<pooled::JobRef, std::pair<uint64_t, int>> by_ref_;
  std::vector<Preempt> preempts_;
  bool changed_ = true;  // since the last pass
};

}  // namespace overcap
