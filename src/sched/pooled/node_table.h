// SPDX-License-Identifier: Apache-2.0
// What every node has free, and the nodes by the number of their free GPUs, so that the fullest one that
// still fits is found in a few steps however many there are.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sched/pooled/pool_job.h"
#include "sched/pooled/rules.h"

namespace overcap::pooled {

class NodeTable {
 public:
  explicit NodeTable(const Rules& rules);

  struct Node {
    uint64_t free = 0;  // GPUs, as bits
    int free_gpus = 0, free_cpus = 0;
    int64_t free_mem = 0;
    int type = 0;  // of nodes without GPUs: the number of types
    int gpus = 0, cpus = 0;
    int64_t mem = 0;
    int cpus_per_gpu = 0;
    bool up = true;
  };

  const Node& operator[](int node) const { return nodes_[static_cast<size_t>(node)]; }
  int size() const { return static_cast<int>(nodes_.size()); }
  int types() const { return types_; }  // without that of nodes that have no GPUs
  int64_t free_gpus() const { return free_gpus_; }
  int64_t free_cpus() const { return free_cpus_; }
  std::span<const int> OfType(int type) const { return by_type_[static_cast<size_t>(type)]; }
  size_t PositionOf(int node) const {
    return positions_[static_cast<size_t>(node)];
  }  // in OfType() of its type

  void Take(int node, uint64_t gpus, int cpus, int64_t mem);
  void Give(int node, uint64_t gpus, int cpus, int64_t mem);
  void SetUp(int node, bool up);

  // The lowest `count` free GPUs of a node.
  static uint64_t Lowest(uint64_t free, int count);

  bool Fits(const Node& node, const Need& need) const {
    return node.up && node.free_gpus >= need.gpus && node.free_cpus >= need.cpus &&
           node.free_mem >= need.mem_mb;
  }

  // The nodes of one type on which a job goes: the fullest that fit, of equal ones the first; those where
  // enough CPUs stay for the GPUs that stay free before others. `allowed(node)` may refuse one. False: too
  // few.
  template <typename Allowed>
  bool Place(const Need& need, int type, const Allowed& allowed, std::vector<int>* found) const {
    found->clear();
    others_.clear();
    for (int free = need.gpus; free <= most_gpus_; ++free) {
      const Bucket& bucket = buckets_[BucketAt(type, free)];
      if (bucket.count == 0) continue;
      for (size_t word = bucket.first; word < bucket.bits.size(); ++word) {
        for (uint64_t left = bucket.bits[word]; left != 0; left &= left - 1) {
          const int node = static_cast<int>(word * 64) + __builtin_ctzll(left);
          const Node& one = (*this)[node];
          if (!Fits(one, need) || !allowed(node)) continue;
          const bool kind = one.free_cpus - need.cpus >= one.cpus_per_gpu * (one.free_gpus - need.gpus);
          (kind ? *found : others_).push_back(node);
          if (static_cast<int>(found->size()) == need.nodes) return true;
        }
      }
    }
    for (const int node : others_) {
      found->push_back(node);
      if (static_cast<int>(found->size()) == need.nodes) return true;
    }
    return false;
  }

 private:
  struct Bucket {
    std::vector<uint64_t> bits;
    size_t first = 0;  // no bit stands before this word
    int count = 0;
  };

  size_t BucketAt(int type, int free) const {
    return static_cast<size_t>(type) * static_cast<size_t>(most_gpus_ + 1) + static_cast<size_t>(free);
  }
  void Move(int node, int from, int to);
  void Put(int node, bool in);

  std::vector<Node> nodes_;
  std::vector<Bucket> buckets_;  // by type and free GPUs
  std::vector<std::vector<int>> by_type_;
  std::vector<size_t> positions_;
  mutable std::vector<int> others_;  // scratch of Place()
  int types_ = 0, most_gpus_ = 0;
  int64_t free_gpus_ = 0, free_cpus_ = 0;
};

}  // namespace overcap::pooled
