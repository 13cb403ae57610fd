// SPDX-License-Identifier: Apache-2.0
// What the pooled scheduler is given and what it answers.
#pragma once

#include <cstdint>
#include <vector>

namespace overcap::pooled {

// What a job needs on each of its nodes; all of its nodes have GPUs of one type. One that asks for nothing
// gets a CPU.
struct Need {
  int nodes = 1;
  int gpus = 0, cpus = 0;
  int64_t mem_mb = 0;
  uint64_t types = ~uint64_t{0};  // of GPUs that it takes, by position in Rules::types
  bool operator==(const Need&) const = default;
  int all_gpus() const { return nodes * gpus; }
  int all_cpus() const { return nodes * cpus; }
};

struct PoolJob {
  uint64_t key = 0;         // the caller's name for it
  uint64_t seq = 0;         // of two jobs that were submitted at the same time the lower goes first
  int account = 0;          // from AddAccount()
  uint64_t partitions = 1;  // those that it may start in; the one with the highest priority is tried first
  Need need;
  int64_t limit_s = 0;  // 0: the partition's
  int64_t submit_s = 0;
  double boost = 0;  // added to its score
  int64_t checkpoint_every_s =
      0;  // it saves its work so often while it runs; 0: it is told by Checkpointed() only
};

using JobRef = uint32_t;  // the scheduler's own name for a job, from Submit() until it is gone

// GPUs of one node, as bits.
struct GpuShare {
  int node = 0;
  uint64_t gpus = 0;
  bool operator==(const GpuShare&) const = default;
};

struct Action {
  enum class Kind { kStart, kPreempt };
  Kind kind = Kind::kStart;
  JobRef job = 0;
  uint64_t key = 0;
  int partition = 0;                  // in which it starts, or runs
  std::vector<GpuShare> shares = {};  // kStart: where
  JobRef by = 0;                      // kPreempt: for whom
  bool operator==(const Action&) const = default;
};

}  // namespace overcap::pooled
