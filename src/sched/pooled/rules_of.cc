// SPDX-License-Identifier: Apache-2.0
#include "sched/pooled/rules_of.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.h"
#include "model/gpu_type.h"

namespace overcap::pooled {
namespace {

constexpr int64_t kMegabyte = 1 << 20;
constexpr int64_t kPlenty = int64_t{1} << 40;  // megabytes of a node whose memory is not shared out

UserLimits LimitsFrom(const PolicyUserLimits& limits) {
  return {limits.gpus.value_or(kNoLimit), limits.cpus.value_or(kNoLimit), limits.jobs.value_or(kNoLimit)};
}

int TypeAt(Rules* rules, const std::string& type) {
  const auto found = std::find(rules->types.begin(), rules->types.end(), type);
  if (found != rules->types.end()) return static_cast<int>(found - rules->types.begin());
  rules->types.push_back(type);
  return static_cast<int>(rules->types.size()) - 1;
}

class NodeMaker {
 public:
  NodeMaker(const Policy& policy, double scale, Rules* rules)
      : policy_(policy), scale_(scale), rules_(rules) {}

  void Make() {
    for (const PolicyNodes& group : policy_.nodes) AddGroup(group);
    for (auto& [type, left] : left_) {
      const int gpus = static_cast<int>(std::lround(left.gpus));
      for (int done = 0; done < gpus; done += left.like.gpus) {
        NodeRule node = left.like;
        node.gpus = std::min(left.like.gpus, gpus - done);
        node.cpus = left.like.cpus * node.gpus / left.like.gpus;
        node.mem_mb = left.like.mem_mb / left.like.gpus * node.gpus;
        rules_->nodes.push_back(node);
      }
    }
  }

 private:
  struct Left {
    double gpus = 0;
    NodeRule like;
  };

  // One host, or the part of it that belongs to the GPUs of one type.
  NodeRule NodeOf(const PolicyNodes& group, const std::string& host, const TypedGpus* kind) {
    NodeRule node;
    node.name = host;
    node.cpus = group.cpus;
    node.mem_mb = group.mem_bytes > 0 ? group.mem_bytes >> 20 : kPlenty;
    node.partitions = 0;
    for (size_t i = 0; i < policy_.partitions.size(); ++i) {
      const std::vector<std::string>& hosts = policy_.partitions[i].nodes;
      if (hosts.empty() || std::find(hosts.begin(), hosts.end(), host) != hosts.end())
        node.partitions |= Bit(static_cast<int>(i));
    }
    for (const PolicyMaintenance& time : policy_.maintenance) {
      if (time.nodes.empty() || std::find(time.nodes.begin(), time.nodes.end(), host) != time.nodes.end())
        node.closed.push_back({time.start_us / 1'000'000, time.end_us / 1'000'000});
    }
    if (kind == nullptr) return node;
    const int all = std::max(1, GpuCountOf(group.gpus));
    node.type = TypeAt(rules_, kind->type);
    node.gpus = std::min(kind->count, kMostGpusPerNode);
    node.cpus = group.cpus * kind->count / all;
    node.mem_mb = node.mem_mb / all * kind->count;
    node.cpus_per_gpu = group.cpus_per_gpu;
    return node;
  }

  void AddGroup(const PolicyNodes& group) {
    const auto hosts = static_cast<double>(group.names.size());
    if (group.gpus.empty()) {
      const auto count = static_cast<size_t>(std::max(1.0, std::round(hosts * scale_)));
      for (size_t i = 0; i < count; ++i)
        rules_->nodes.push_back(NodeOf(group, group.names[i % group.names.size()], nullptr));
    }
    for (const TypedGpus& kind : group.gpus) {
      if (kind.count <= 0) continue;
      const auto count = static_cast<size_t>(std::floor(hosts * scale_ + 1e-9));
      for (size_t i = 0; i < count; ++i)
        rules_->nodes.push_back(NodeOf(group, group.names[i % group.names.size()], &kind));
      Left& left = left_[TypeAt(rules_, kind.type)];
      left.gpus += (hosts * scale_ - static_cast<double>(count)) * kind.count;
      left.like = NodeOf(group, group.names.front(), &kind);
    }
  }

  const Policy& policy_;
  const double scale_;
  Rules* rules_;
  std::map<int, Left> left_;  // by type: GPUs that make no whole node
};

// Caps times `scale`, rounded so that their sum is right too.
std::vector<int> ScaledCaps(const Policy& policy, double scale) {
  std::vector<int> caps;
  double sum = 0;
  int given = 0;
  for (const PolicyLab& lab : policy.labs) {
    sum += lab.gpu_cap * scale;
    caps.push_back(std::max(0, static_cast<int>(std::lround(sum)) - given));
    given += caps.back();
  }
  return caps;
}

LabRule LabOf(const PolicyLab& lab, int cap, double scale, const Rules& rules) {
  LabRule rule{lab.name,   cap,
               {},         lab.cpu_cap ? static_cast<int>(*lab.cpu_cap * scale) : kNoLimit,
               lab.shares, std::max(1, static_cast<int>(lab.members.size()))};
  if (lab.type_caps.empty()) return rule;
  rule.type_caps.assign(rules.types.size(), kNoLimit);
  for (const TypedGpus& kind : lab.type_caps) {
    const auto found = std::find(rules.types.begin(), rules.types.end(), kind.type);
    if (found != rules.types.end())
      rule.type_caps[static_cast<size_t>(found - rules.types.begin())] =
          static_cast<int>(std::lround(kind.count * scale));
  }
  return rule;
}

PartitionRule PartitionOf(const Policy& policy, const PolicyPartition& partition) {
  PartitionRule rule;
  rule.name = partition.name;
  rule.priority = partition.priority;
  rule.max_time_s = partition.max_time_s;
  rule.default_time_s = partition.default_time_s;
  rule.per_user = LimitsFrom(partition.per_user);
  rule.gpus_per_job = partition.gpus_per_job.value_or(kNoLimit);
  rule.nodes_per_job = partition.nodes_per_job.value_or(kNoLimit);
  rule.cpus_per_gpu = partition.cpus_per_gpu;
  rule.mem_mb_per_gpu = (partition.mem_per_gpu + kMegabyte - 1) / kMegabyte;
  rule.counts = partition.counts != CapRule::kFree;
  rule.yields = partition.counts == CapRule::kYields;
  rule.charge = partition.charge;
  rule.grace_s = partition.grace_s;
  rule.quantum_s = partition.quantum_s;
  for (size_t victim = 0; victim < policy.partitions.size(); ++victim) {
    const PolicyPartition& theirs = policy.partitions[victim];
    if (std::find(theirs.preempted_by.begin(), theirs.preempted_by.end(), partition.name) ==
        theirs.preempted_by.end())
      continue;
    (theirs.labmates_only ? rule.preempts_in_lab : rule.preempts) |= Bit(static_cast<int>(victim));
  }
  if (partition.labs.empty()) return rule;
  for (const PolicyLab& lab : policy.labs)
    rule.labs.push_back(std::find(partition.labs.begin(), partition.labs.end(), lab.name) !=
                        partition.labs.end());
  return rule;
}

}  // namespace

Rules RulesOf(const Policy& policy, double scale) {
  Rules rules;
  NodeMaker(policy, scale, &rules).Make();
  const std::vector<int> caps = ScaledCaps(policy, scale);
  for (size_t i = 0; i < policy.labs.size(); ++i)
    rules.labs.push_back(LabOf(policy.labs[i], caps[i], scale, rules));
  for (const PolicyPartition& partition : policy.partitions)
    rules.partitions.push_back(PartitionOf(policy, partition));
  const PolicyWeights& weights = policy.weights;
  rules.weights = {static_cast<double>(weights.lab_share),
                   static_cast<double>(weights.user_share),
                   static_cast<double>(weights.age),
                   static_cast<double>(weights.size),
                   weights.lab_half_life_s,
                   weights.user_half_life_s,
                   std::max<int64_t>(1, weights.age_full_s)};
  return rules;
}

uint64_t TypesOf(const Rules& rules, std::string_view expression) {
  uint64_t types = 0;
  for (size_t i = 0; i < rules.types.size(); ++i) {
    const auto matches = GpuTypeMatches(expression, rules.types[i]);
    if (matches && *matches) types |= Bit(static_cast<int>(i));
  }
  return types;
}

AccountRule AccountOf(const Policy& policy, int lab, std::string_view name, int user) {
  const PolicyLab& of = policy.labs[static_cast<size_t>(lab)];
  AccountRule rule{lab, user, LimitsFrom(LimitsOf(of, name)), 0};
  for (size_t i = 0; i < policy.partitions.size(); ++i) {
    if (overcap::MayUse(policy.partitions[i], of.name, name)) rule.partitions |= Bit(static_cast<int>(i));
  }
  return rule;
}

}  // namespace overcap::pooled
