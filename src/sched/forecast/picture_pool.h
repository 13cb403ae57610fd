// SPDX-License-Identifier: Apache-2.0
// The nodes and partitions of a picture as rules of the pooled scheduler. Pure.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/cluster_picture.h"
#include "sched/pooled/pool_job.h"
#include "sched/pooled/rules.h"

namespace overcap::forecast {

struct PicturePool {
  pooled::Rules rules;  // without labs; types: GPUs of one name on nodes with the same features
  // By name, and whether its jobs count as over the cap there.
  std::map<std::pair<std::string, bool>, int> partitions;
  std::vector<int> away;
  std::vector<std::string> assumed;

  pooled::Need NeedOf(const PictureJob& job) const;
  // Where a job that runs is: GPUs that nobody else has there. Empty: its nodes are not known.
  std::vector<pooled::GpuShare> Take(const PictureJob& job);
  uint64_t TakeOn(size_t node, int gpus);
  // GPUs of a node that are in use, less those that were taken.
  int Unexplained(size_t node) const { return used_[node] - __builtin_popcountll(taken_[node]); }

 private:
  friend PicturePool MakePicturePool(const ClusterPicture& picture);
  std::vector<std::vector<std::string>> features_;            // by type
  std::unordered_map<std::string, std::vector<int>> places_;  // by node's name: in the rules
  std::vector<uint64_t> taken_;                               // by node
  std::vector<int> used_;                                     // by node, as the cluster tells it
};

PicturePool MakePicturePool(const ClusterPicture& picture);

}  // namespace overcap::forecast
