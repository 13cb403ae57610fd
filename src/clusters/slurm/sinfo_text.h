// SPDX-License-Identifier: Apache-2.0
// The nodes, as `sinfo` tells them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "clusters/slurm/node_state.h"

namespace overcap {

struct SlurmNodeGpus {
  std::string type;  // as Slurm calls it; empty: GPUs without a type
  int total = 0, used = 0;
  std::vector<int> used_indices = {};  // where Slurm tells them
  bool operator==(const SlurmNodeGpus&) const = default;
};

struct SlurmNode {
  std::string name;
  std::vector<std::string> partitions;
  std::string raw_state;
  NodeStateMeaning state;
  int cpus = 0, cpus_used = 0;
  double load = -1;                     // -1: not known
  int64_t mem_bytes = 0, mem_used = 0;  // given to jobs
  int64_t mem_free = -1;                // as the node's kernel sees it; -1: not known
  std::vector<SlurmNodeGpus> gpus;
  std::vector<std::string> features;
  std::string reason;  // why it is down or drained; "" when nobody wrote one

  int GpuTotal() const;
  int GpuUsed() const;
};

struct SinfoText {
  std::vector<SlurmNode> nodes;                           // in the order of sinfo
  std::string default_partition;                          // "" when there is none
  std::map<std::string, bool, std::less<>> partition_up;  // of those that have nodes
};

// Like SqueueCommand(): `mark` for this call alone, variables of tool_variables.h.
std::vector<std::string> SinfoCommand(std::string_view mark);

Result<SinfoText> ParseSinfo(std::string_view text, std::string_view mark);

// "gpu:a40:4(S:0-1),gpu:t4:2" and, of what is in use, "gpu:a40:2(IDX:0,3),gpu:t4:0(IDX:N/A)". Other kinds of
// gres are left out.
std::vector<SlurmNodeGpus> ParseGpuGres(std::string_view gres, std::string_view gres_used);

}  // namespace overcap
