// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launch/torch_run.h"
#include "sys/supervisor.h"

namespace overcap {

// The ranks of one host, for whoever starts them there.
struct NodeRanks {
  int node_rank = 0, first_rank = 0, ranks = 0, world_size = 0;
  std::vector<std::string> command;
  std::vector<std::string> env;  // the whole environment, without what makes a rank a rank
  std::string folder;            // where they start
  std::string master_addr;
  int master_port = 0;
  TorchRun run;
  std::vector<std::vector<int>> cpus;  // of local rank i; empty: not bound
  int job_cpus = 0;                    // processors that all ranks share; 0: not known
};

// How many files may be open at once while so many ranks run: their logs and times, both ends of their pipes,
// their processes, and what leads to their hosts.
constexpr int64_t FilesFor(int ranks) {
  return 200 + int64_t{16} * ranks;
}

// One member for each rank, ready to run but for where its output goes: the environment with RANK and its
// like, a process group of its own, death with the caller.
std::vector<GroupMember> MembersOf(const NodeRanks& node);

}  // namespace overcap
