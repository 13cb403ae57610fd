// SPDX-License-Identifier: Apache-2.0
#include "sched/pooled/node_table.h"

#include <algorithm>

namespace overcap::pooled {

NodeTable::NodeTable(const Rules& rules) : types_(static_cast<int>(rules.types.size())) {
  for (const NodeRule& rule : rules.nodes) {
    Node node;
    node.gpus = node.free_gpus = rule.type < 0 ? 0 : std::clamp(rule.gpus, 0, kMostGpusPerNode);
    node.free = node.gpus == 64 ? ~uint64_t{0} : Bit(node.gpus) - 1;
    node.cpus = node.free_cpus = rule.cpus;
    node.mem = node.free_mem = rule.mem_mb;
    node.type = node.gpus == 0 ? types_ : rule.type;
    node.cpus_per_gpu = rule.cpus_per_gpu;
    most_gpus_ = std::max(most_gpus_, node.gpus);
    nodes_.push_back(node);
  }
  buckets_.resize((static_cast<size_t>(types_) + 1) * (static_cast<size_t>(most_gpus_) + 1));
  for (Bucket& bucket : buckets_) {
    bucket.bits.resize((nodes_.size() + 63) / 64);
    bucket.first = bucket.bits.size();
  }
  by_type_.resize(static_cast<size_t>(types_) + 1);
  for (int node = 0; node < size(); ++node) {
    std::vector<int>& same = by_type_[static_cast<size_t>((*this)[node].type)];
    positions_.push_back(same.size());
    same.push_back(node);
    Put(node, true);
  }
}

// Nodes that are away count for nothing and stand in no bucket.
void NodeTable::Put(int node, bool in) {
  const Node& one = (*this)[node];
  Bucket& bucket = buckets_[BucketAt(one.type, one.free_gpus)];
  const size_t word = static_cast<size_t>(node) / 64;
  bucket.bits[word] ^= Bit(node % 64);
  bucket.count += in ? 1 : -1;
  if (in) bucket.first = std::min(bucket.first, word);
  free_gpus_ += in ? one.free_gpus : -one.free_gpus;
  free_cpus_ += in ? one.free_cpus : -one.free_cpus;
}

void NodeTable::Take(int node, uint64_t gpus, int cpus, int64_t mem) {
  Node& one = nodes_[static_cast<size_t>(node)];
  if (one.up) Put(node, false);
  one.free &= ~gpus;
  one.free_gpus = __builtin_popcountll(one.free);
  one.free_cpus -= cpus;
  one.free_mem -= mem;
  if (one.up) Put(node, true);
}

void NodeTable::Give(int node, uint64_t gpus, int cpus, int64_t mem) {
  Node& one = nodes_[static_cast<size_t>(node)];
  if (one.up) Put(node, false);
  one.free |= gpus;
  one.free_gpus = __builtin_popcountll(one.free);
  one.free_cpus += cpus;
  one.free_mem += mem;
  if (one.up) Put(node, true);
}

void NodeTable::SetUp(int node, bool up) {
  Node& one = nodes_[static_cast<size_t>(node)];
  if (one.up == up) return;
  if (one.up) Put(node, false);
  one.up = up;
  if (up) Put(node, true);
}

uint64_t NodeTable::Lowest(uint64_t free, int count) {
  uint64_t taken = 0;
  for (; count > 0 && free != 0; --count) {
    taken |= free & (~free + 1);
    free &= free - 1;
  }
  return taken;
}

}  // namespace overcap::pooled
