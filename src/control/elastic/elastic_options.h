// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
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
  int ranks = 1;        // on this node
  int master_port = 0;  // MASTER_PORT in each epoch; 0: a free one
  std::string run_id;   // TORCHELASTIC_RUN_ID; "": the id of the place
  std::string role = "default";
  bool virtual_local_rank = false;  // LOCAL_RANK is 0, and each rank sees its own GPU only
  std::vector<int> signals;         // that stop this node and are handed on to its ranks, beside INT
  std::string signals_text;         // as the user listed them; "": torchrun's own list
  int node_rank = -1;               // the place this node wants; -1: any
  int max_restarts = 0;
  elastic::Grow grow = elastic::Grow::kAtCheckpoint;
  int64_t ttl_us = 5'000'000;
  int64_t join_timeout_us = 600'000'000;
  int64_t last_call_us = 1'000'000;
  int64_t hang_us = 0;            // 0: silence is no fault
  int64_t grace_us = 30'000'000;  // between TERM and KILL, as torchrun has it
  std::string local_addr;         // by which other nodes reach this one; "": as the leader is reached
  Tee tee = Tee::kRank0;
  std::vector<RankView> views;  // by local rank, in the place of `tee`; empty: as `tee` says
  std::string mark;             // template of what precedes a marked line: "[${role_name}${local_rank}]:"
  bool pipes = false;           // ranks do not write their logs themselves
  std::string logs;             // folder; "": a new one below <root>/launches
  bool logs_below = false;      // in a folder of its own below `logs`
  std::string program;          // that all nodes run; their arguments may differ
  std::vector<std::string> command;
};

// `text` with ${role_name}, ${local_rank}, ${rank} and ${hostname} replaced.
std::string LineMark(std::string_view text, std::string_view role, int local_rank, int rank,
                     std::string_view host);

}  // namespace overcap
