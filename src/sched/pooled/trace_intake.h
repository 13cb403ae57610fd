// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "sched/pooled/replay.h"

namespace overcap::pooled {

// Makes jobs for the scheduler out of those of a trace: whose they are, what they ask for, where they may go.
class TraceIntake {
 public:
  TraceIntake(const Policy& policy, const Trace& trace, const ReplayOptions& options,
              PooledScheduler* scheduler, Replayed* replayed);

  // kUsage when the partitions of the options do not exist.
  Result<void> Begin();
  // Nothing: it is skipped, and Replayed says why.
  std::optional<PoolJob> JobOf(size_t at);

 private:
  int AccountAt(int lab, int32_t user);
  uint64_t PartitionsOf(const TraceJob& job, int lab) const;
  uint64_t PartitionsNamed(const std::string& names) const;
  Need NeedOf(const TraceJob& job, uint64_t types) const;

  const Policy& policy_;
  const Trace& trace_;
  const ReplayOptions& options_;
  PooledScheduler* scheduler_;
  Replayed* replayed_;
  std::vector<int> labs_;        // by lab of the trace; -1: it is not in the policy
  std::vector<uint64_t> types_;  // by type of the trace
  std::vector<uint64_t> named_;  // by partition of the trace
  std::unordered_map<uint64_t, int> accounts_;
  uint64_t chosen_ = 0;
  int most_gpus_ = 1, most_cpus_ = 1, cpus_per_gpu_ = 0;
};

}  // namespace overcap::pooled
