// SPDX-License-Identifier: Apache-2.0
// A policy as the pooled scheduler reads it: names have become positions, every default is filled in.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace overcap::pooled {

constexpr int64_t kForever = std::numeric_limits<int64_t>::max() / 4;
constexpr int kNoLimit = std::numeric_limits<int>::max() / 4;
constexpr int kMostGpusPerNode = 64;
constexpr size_t kMostPartitions = 64;
constexpr size_t kMostTypes = 63;  // the last bit stands for nodes without GPUs

// Bit `position` alone.
constexpr uint64_t Bit(int position) {
  return uint64_t{1} << position;
}

// A time in which nothing may run on a node.
struct ClosedTime {
  int64_t from_s = 0, until_s = 0;
};

struct NodeRule {
  std::string name = {};
  int type = -1;  // position in Rules::types; -1: it has no GPUs
  int gpus = 0;
  int cpus = 0;
  int64_t mem_mb = 0;
  int cpus_per_gpu = 0;                 // so many CPUs are kept for a free GPU where that can be done
  std::vector<ClosedTime> closed = {};  // ascending, apart from each other
  uint64_t partitions = ~uint64_t{0};   // whose jobs may run here, by position
};

struct LabRule {
  std::string name = {};
  int gpu_cap = kNoLimit;
  std::vector<int> type_caps = {};  // by type; kNoLimit where there is none; empty: none
  int cpu_cap = kNoLimit;
  double share = 1;  // what it is entitled to, of the sum over all labs
  int members = 1;   // among whom it is shared
};

// What somebody may have at the same time.
struct UserLimits {
  int gpus = kNoLimit, cpus = kNoLimit, jobs = kNoLimit;
};

// A user in a lab.
struct AccountRule {
  int lab = 0, user = 0;               // users: any numbers from 0 on, the same in every lab
  UserLimits limits = {};              // in partitions that count in full
  uint64_t partitions = ~uint64_t{0};  // that the user may use with this lab, as far as users are concerned
};

struct PartitionRule {
  std::string name = {};
  int priority = 0;            // higher goes first, whatever the shares say
  int64_t max_time_s = 0;      // 0: none
  int64_t default_time_s = 0;  // of jobs that name none; 0: the maximum
  UserLimits per_user = {};    // over all labs
  int gpus_per_job = kNoLimit, nodes_per_job = kNoLimit;
  int cpus_per_gpu = 0;          // of jobs that ask for none; 0: that of the node
  int64_t mem_mb_per_gpu = 0;    // the same; 0: none
  bool counts = true;            // against the lab's caps
  bool yields = false;           // counts, but users' limits inside the lab do not hold
  double charge = 1;             // of a GPU second in the fair share
  uint64_t preempts = 0;         // partitions whose jobs give way to those of this one
  uint64_t preempts_in_lab = 0;  // the same, but only jobs of the same lab do
  int64_t grace_s = 0;           // between the warning and the end, of its own jobs
  int64_t quantum_s = 0;         // its jobs run so long before they are preempted
  std::vector<char> labs = {};   // may it be used, by lab; empty: by all
};

struct ShareWeights {
  double lab = 1000, user = 500;  // of fair share
  double age = 300;  // for each `age_unit_s` that a job has waited: without end, so nobody starves
  double size = 50;  // for a job as large as the whole pool
  int64_t lab_half_life_s = 7 * 86400, user_half_life_s = 7 * 86400;  // 0: use never fades
  int64_t age_unit_s = 7 * 86400;
  int64_t look_every_s = 60;  // shares are looked at anew at most so often
};

struct Rules {
  std::vector<std::string> types;  // those that are given away first stand first
  std::vector<NodeRule> nodes;
  std::vector<LabRule> labs;
  std::vector<PartitionRule> partitions;
  ShareWeights weights;
};

// The limit that a job has in a partition; 0 for a job that is not allowed there.
constexpr int64_t LimitIn(const PartitionRule& partition, int64_t asked_s) {
  if (asked_s <= 0) asked_s = partition.default_time_s > 0 ? partition.default_time_s : partition.max_time_s;
  if (asked_s <= 0) return kForever;
  return partition.max_time_s > 0 && asked_s > partition.max_time_s ? 0 : asked_s;
}

inline bool MayUse(const PartitionRule& partition, int lab) {
  return partition.labs.empty() || partition.labs[static_cast<size_t>(lab)] != 0;
}

}  // namespace overcap::pooled
