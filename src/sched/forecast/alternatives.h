// SPDX-License-Identifier: Apache-2.0
// What a job that waits could ask for instead. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sched/forecast/live_queue.h"

namespace overcap::forecast {

struct Alternative {
  enum class Kind { kPartition, kFewer, kType, kShorter };
  Kind kind = Kind::kPartition;
  pooled::PoolJob asks;
  int partition = -1;   // kPartition: in the rules
  int type = -1;        // kType: in the rules
  int gpus = 0;         // kFewer: in all
  int64_t limit_s = 0;  // kShorter
};

// `partitions`: those that its user may use, as bits. What asks for the least change stands first within each
// kind; of fewer GPUs the most.
std::vector<Alternative> AlternativesOf(const LiveQueue& queue, uint64_t partitions);

}  // namespace overcap::forecast
