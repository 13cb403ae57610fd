// SPDX-License-Identifier: Apache-2.0
// The partitions, as `scontrol show partition` tells them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace overcap {

struct SlurmPartition {
  std::string name;
  bool is_default = false, up = true;
  int64_t max_time_s = 0;  // 0: no limit
  int64_t grace_s = 0;     // of its jobs when they are preempted
  int priority_tier = 0;
  std::string preempt_mode;  // "OFF", "REQUEUE", "CANCEL", "SUSPEND,GANG"
  std::string qos;           // "": none
  std::vector<std::string> allowed_accounts, denied_accounts, allowed_qos;  // empty: no such list
};

std::vector<std::string> PartitionCommand();

// kCorrupt when the text is cut off or is none of these rows. Partitions in the order of the text.
Result<std::vector<SlurmPartition>> ParsePartitions(std::string_view text);

}  // namespace overcap
