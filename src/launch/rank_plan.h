// SPDX-License-Identifier: Apache-2.0
// Which ranks run on which host. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "launch/allocation.h"

namespace overcap {

constexpr int kMaxRanks = 1'000'000;

struct PlanRequest {    // 0: not asked for
  int ranks = 0;        // -n
  int per_node = 0;     // --ppn
  int nodes = 0;        // --nnodes
  int spare_nodes = 0;  // --spare-nodes: the last ones are kept in reserve
};

struct PlannedHost {
  std::string name;
  int first_rank = 0;  // ranks of a host are consecutive
  int ranks = 0;       // at least 1
  int gpus = 0;
  bool operator==(const PlannedHost&) const = default;
};

struct RankPlan {
  std::vector<PlannedHost> hosts;     // node rank = position
  std::vector<AllocatedHost> spares;  // hosts of the allocation that are free to stand in, best first
  int world_size = 0;

  bool Even() const;  // the same number of ranks on every host
  int MostPerHost() const;
  int HostOf(int rank) const;  // position in hosts
};

// Without -n and --ppn: one rank per GPU of each host (which may differ), one on a host without any; a host
// file's slots count instead where they are told. With -n only: spread evenly, as far as slots allow. --ppn
// wins over slots and GPUs, and with -n fills one host after the other. Hosts that stay empty are spares. A
// host without GPUs of which nobody told the slots takes as many ranks as -n asks for. An unknown number of
// GPUs (-1) is that of the first host of which it is known, else 0. kUsage for zero ranks, more ranks than
// slots, more nodes than there are.
Result<RankPlan> PlanRanks(const std::vector<AllocatedHost>& hosts, const PlanRequest& request);

// How many ranks are on each host, in order, in short: "4x3,2" for 4, 4, 4, 2. At most kMaxHosts hosts and
// kMaxRanks ranks, else kUsage.
std::string RanksPerHostText(const RankPlan& plan);
Result<std::vector<int>> ParseRanksPerHost(std::string_view text);

}  // namespace overcap
