// SPDX-License-Identifier: Apache-2.0
#include "sched/pooled/job_defaults.h"

#include <algorithm>

namespace overcap::pooled {
namespace {

// Of all nodes that could take it, the fewest: then it fits on each of them as far as its GPUs do.
int CpusPerGpu(const Rules& rules, const Need& need) {
  int fewest = kNoLimit;
  for (const NodeRule& node : rules.nodes) {
    if (node.type < 0 || node.gpus < need.gpus || (need.types & Bit(node.type)) == 0) continue;
    fewest = std::min({fewest, node.cpus_per_gpu, node.cpus / node.gpus});
  }
  return fewest == kNoLimit ? 0 : fewest;
}

}  // namespace

int FirstPartition(const Rules& rules, uint64_t partitions) {
  int first = -1;
  for (int i = 0; i < static_cast<int>(rules.partitions.size()); ++i) {
    if ((partitions & Bit(i)) == 0) continue;
    if (first < 0 || rules.partitions[static_cast<size_t>(i)].priority >
                         rules.partitions[static_cast<size_t>(first)].priority)
      first = i;
  }
  return first;
}

Need WithDefaults(const Rules& rules, uint64_t partitions, Need need) {
  const int first = FirstPartition(rules, partitions);
  if (first < 0 || need.gpus == 0) return need;
  const PartitionRule& rule = rules.partitions[static_cast<size_t>(first)];
  if (need.cpus == 0)
    need.cpus = need.gpus * (rule.cpus_per_gpu > 0 ? rule.cpus_per_gpu : CpusPerGpu(rules, need));
  if (need.mem_mb == 0) need.mem_mb = need.gpus * rule.mem_mb_per_gpu;
  return need;
}

}  // namespace overcap::pooled
