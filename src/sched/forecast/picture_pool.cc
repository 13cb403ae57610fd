// SPDX-License-Identifier: Apache-2.0
#include "sched/forecast/picture_pool.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "model/gpu_type.h"
#include "model/picture_fit.h"

namespace overcap::forecast {
namespace {

using pooled::Bit;

int64_t constexpr kPlenty = int64_t{1} << 40;  // megabytes: memory is not counted

bool Means(std::string_view expression, const std::string& type, const std::vector<std::string>& features) {
  if (expression.empty()) return true;
  if (!type.empty() && GpuTypeMatches(expression, type).value_or(false)) return true;
  return std::any_of(features.begin(), features.end(), [&](const std::string& feature) {
    return GpuTypeMatches(expression, feature).value_or(false);
  });
}

std::set<std::string> QosIn(const ClusterPicture& picture, const PicturePartition& partition) {
  std::set<std::string> names;
  if (!partition.qos.empty()) names.insert(partition.qos);
  for (const PictureJob& job : picture.jobs) {
    if (job.partition == partition.name && !job.qos.empty()) names.insert(job.qos);
  }
  return names;
}

// Jobs of `victim` give way to those of `by`: by the tiers of partitions, or by what their QOS may do.
bool GivesWay(const ClusterPicture& picture, const PicturePartition& victim, const PicturePartition& by) {
  if (victim.preemptable && by.priority_tier > victim.priority_tier) return true;
  const std::set<std::string> theirs = QosIn(picture, victim);
  for (const std::string& name : QosIn(picture, by)) {
    const PictureQos* qos = FindQos(picture, name);
    if (qos == nullptr || theirs.contains(name)) continue;
    const bool all =
        !theirs.empty() && std::all_of(theirs.begin(), theirs.end(), [&](const std::string& one) {
          return std::find(qos->preempts.begin(), qos->preempts.end(), one) != qos->preempts.end();
        });
    if (all) return true;
  }
  return false;
}

void AddPartitions(const ClusterPicture& picture, PicturePool* pool) {
  std::set<std::pair<std::string, bool>> wanted;
  for (const PicturePartition& one : picture.partitions) wanted.emplace(one.name, one.overcap);
  for (const PictureJob& job : picture.jobs) {
    for (const std::string& name : Split(job.partition, ',')) {
      if (!name.empty() || picture.partitions.empty()) wanted.emplace(name, job.overcap);
    }
  }
  if (wanted.empty()) wanted.emplace("", false);
  for (const auto& [name, overcap] : wanted) {
    if (pool->rules.partitions.size() == pooled::kMostPartitions) {
      pool->assumed.push_back("some of very many partitions left out");
      break;
    }
    pooled::PartitionRule rule;
    rule.name = name;
    rule.counts = !overcap;
    if (const PicturePartition* partition = FindPartition(picture, name); partition != nullptr) {
      rule.priority = partition->priority_tier;
      if (const PictureQos* qos = FindQos(picture, partition->qos); qos != nullptr) {
        rule.per_user.gpus = qos->gpus_per_user.value_or(pooled::kNoLimit);
        rule.per_user.jobs = qos->jobs_per_user.value_or(pooled::kNoLimit);
      }
    }
    pool->partitions[{name, overcap}] = static_cast<int>(pool->rules.partitions.size());
    pool->rules.partitions.push_back(std::move(rule));
  }
}

void AddPreemption(const ClusterPicture& picture, PicturePool* pool) {
  std::map<std::pair<std::string, std::string>, bool> known;
  for (const PicturePartition& victim : picture.partitions) {
    for (const PicturePartition& by : picture.partitions) {
      if (&victim != &by) known[{by.name, victim.name}] = GivesWay(picture, victim, by);
    }
  }
  uint64_t yielding = 0;
  for (const auto& [by, at] : pool->partitions) {
    for (const auto& [victim, bit] : pool->partitions) {
      if (!known[{by.first, victim.first}] || known[{victim.first, by.first}]) continue;
      pool->rules.partitions[static_cast<size_t>(at)].preempts |= Bit(bit);
      yielding |= Bit(bit);
    }
  }
  bool notice = false;
  for (const auto& [name, bit] : pool->partitions) {
    const PicturePartition* partition = FindPartition(picture, name.first);
    if ((yielding & Bit(bit)) == 0 || partition == nullptr) continue;
    pooled::PartitionRule& rule = pool->rules.partitions[static_cast<size_t>(bit)];
    rule.grace_s = partition->grace_s;
    for (const std::string& one : QosIn(picture, *partition)) {
      const PictureQos* qos = FindQos(picture, one);
      if (qos == nullptr) continue;
      rule.grace_s = std::max(rule.grace_s, qos->grace_s);
      rule.quantum_s = std::max(rule.quantum_s, qos->exempt_s);
    }
    notice = notice || rule.grace_s > 0;
  }
  if (yielding != 0)
    pool->assumed.push_back(StrCat("jobs that give way do so ", notice ? "after their grace" : "at once",
                                   ", and go on later where they were"));
}

}  // namespace

pooled::Need PicturePool::NeedOf(const PictureJob& job) const {
  const PictureNeed asked = overcap::NeedOf(job);
  pooled::Need need;
  need.nodes = asked.nodes, need.gpus = asked.gpus, need.cpus = asked.cpus;
  need.types = 0;
  for (size_t i = 0; i < rules.types.size(); ++i) {
    if (Means(asked.gpu_type, rules.types[i], features_[i]) && FeaturesMatch(features_[i], asked.features))
      need.types |= Bit(static_cast<int>(i));
  }
  return need;
}

uint64_t PicturePool::TakeOn(size_t node, int gpus) {
  const pooled::NodeRule& rule = rules.nodes[node];
  const uint64_t all = rule.gpus >= 64 ? ~uint64_t{0} : (uint64_t{1} << rule.gpus) - 1;
  uint64_t found = 0;
  for (uint64_t free = all & ~taken_[node]; free != 0 && gpus > 0; free &= free - 1, --gpus)
    found |= free & ~(free - 1);
  taken_[node] |= found;
  return found;
}

std::vector<pooled::GpuShare> PicturePool::Take(const PictureJob& job) {
  std::vector<pooled::GpuShare> shares;
  int left = job.gpus;
  for (size_t i = 0; i < job.nodes.size(); ++i) {
    const auto found = places_.find(job.nodes[i]);
    if (found == places_.end()) continue;
    const int behind = static_cast<int>(job.nodes.size() - i);
    int here = (left + behind - 1) / behind;
    bool first = true;
    for (const int place : found->second) {
      const auto at = static_cast<size_t>(place);
      const bool of_type =
          job.gpu_types.empty() ||
          std::any_of(job.gpu_types.begin(), job.gpu_types.end(), [&](const TypedGpus& kind) {
            return kind.type.empty() || rules.nodes[at].type < 0 ||
                   Means(kind.type, rules.types[static_cast<size_t>(rules.nodes[at].type)], {});
          });
      const uint64_t gpus = here > 0 && of_type ? TakeOn(at, here) : 0;
      if (gpus == 0 && (job.gpus > 0 || !first)) continue;
      first = false;
      here -= __builtin_popcountll(gpus), left -= __builtin_popcountll(gpus);
      shares.push_back({place, gpus});
    }
  }
  return shares;
}

PicturePool MakePicturePool(const ClusterPicture& picture) {
  PicturePool pool;
  pool.rules.weights = {0, 0, 0, 0, 0, 0, 1};
  AddPartitions(picture, &pool);
  AddPreemption(picture, &pool);
  std::map<std::pair<std::string, std::vector<std::string>>, int> types;
  bool few_types = true, away = false;
  for (const PictureNode& from : picture.nodes) {
    pooled::NodeRule node;
    node.name = from.name, node.mem_mb = kPlenty;
    node.partitions = 0;
    for (const auto& [name, bit] : pool.partitions) {
      if (from.partitions.empty() ||
          std::find(from.partitions.begin(), from.partitions.end(), name.first) != from.partitions.end())
        node.partitions |= Bit(bit);
    }
    const auto add = [&](const pooled::NodeRule& rule, int used) {
      const auto at = static_cast<int>(pool.rules.nodes.size());
      pool.places_[from.name].push_back(at);
      pool.rules.nodes.push_back(rule);
      pool.taken_.push_back(0);
      pool.used_.push_back(used);
      if (!from.usable) pool.away.push_back(at), away = true;
    };
    const int all = GpuCountOf(from.gpus);
    if (all <= 0) {
      node.cpus = from.cpus;
      add(node, 0);
      continue;
    }
    for (const TypedGpus& kind : from.gpus) {
      if (kind.count <= 0) continue;
      auto found = types.find({kind.type, from.features});
      if (found == types.end()) {
        if (pool.rules.types.size() == pooled::kMostTypes) {
          few_types = false;
          continue;
        }
        found = types.emplace(std::make_pair(kind.type, from.features), static_cast<int>(types.size())).first;
        pool.rules.types.push_back(kind.type);
        pool.features_.push_back(from.features);
      }
      node.type = found->second;
      node.gpus = std::min(kind.count, pooled::kMostGpusPerNode);
      node.cpus = from.cpus * kind.count / all;
      int used = 0;
      for (const TypedGpus& one : from.gpus_used) used += one.type == kind.type ? one.count : 0;
      add(node, std::min(used, node.gpus));
    }
  }
  if (!few_types) pool.assumed.push_back("some of very many kinds of nodes left out");
  if (away) pool.assumed.push_back("nodes that take no jobs now stay away");
  return pool;
}

}  // namespace overcap::forecast
