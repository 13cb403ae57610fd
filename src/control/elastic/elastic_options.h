// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "elastic/leader_state.h"
#include "elastic/place.h"
#include "launch/logs/rank_logs.h"

namespace overcap {

// What `overcap launch --nnodes MIN:MAX` was asked for.
struct ElasticOptions {
  elastic::RendezvousPlace place;
  bool open = false;     // no key: who reaches the port may join
  std::string key_file;  // where the group's key is, when no one set it; set by RunElasticLaunch
  int min_nodes = 1, max_nodes = 1;
  int ranks = 1;       // on this node
  int node_rank = -1;  // the place this node wants; -1: any
  int max_restarts = 0;
  elastic::Grow grow = elastic::Grow::kAtCheckpoint;
  int64_t ttl_us = 5'000'000;
  int64_t join_timeout_us = 600'000'000;
  int64_t last_call_us = 1'000'000;
  int64_t hang_us = 0;            // 0: silence is no fault
  int64_t grace_us = 30'000'000;  // between TERM and KILL, as torchrun has it
  std::string local_addr;         // by which other nodes reach this one; "": as the leader is reached
  Tee tee = Tee::kRank0;
  bool pipes = false;  // ranks do not write their logs themselves
  std::string logs;    // folder; "": a new one below <root>/launches
  std::vector<std::string> command;
};

}  // namespace overcap
