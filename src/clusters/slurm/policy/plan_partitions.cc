// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/policy/plan_partitions.h"

#include <algorithm>
#include <unordered_set>

#include "base/text.h"
#include "clusters/slurm/slurm_time.h"
#include "model/host_list.h"

namespace overcap {
namespace {

constexpr int64_t kMebi = int64_t{1} << 20;

std::string TimeText(int64_t seconds) {
  return seconds == 0 ? "UNLIMITED" : FormatSlurmDuration(seconds);
}

std::string NodesText(const Policy& policy, const PolicyPartition& partition) {
  if (!partition.nodes.empty()) return CompressHostList(partition.nodes, HostListStyle::kSlurm);
  std::vector<std::string> all;
  for (const PolicyNodes& nodes : policy.nodes) all.insert(all.end(), nodes.names.begin(), nodes.names.end());
  return CompressHostList(all, HostListStyle::kSlurm);
}

std::string AccountsText(const Policy& policy, const PolicyPartition& partition) {
  std::vector<std::string> names;
  for (const PolicyLab& lab : policy.labs) {
    const bool may =
        partition.labs.empty() || std::ranges::find(partition.labs, lab.name) != partition.labs.end();
    if (may) names.push_back(AccountIn(policy, lab.name, partition));
  }
  return Join(names, ",");
}

// Jobs that may spill into a partition that yields carry its QOS, and must be let in where they come first.
std::string QosText(const Policy& policy, const PolicyPartition& partition,
                    const std::vector<PreemptionClass>& classes) {
  std::vector<std::string> names;
  for (const PreemptionClass& one : classes) {
    const bool own = std::ranges::find(one.partitions, &partition) != one.partitions.end();
    const bool spills = partition.counts == CapRule::kCounts && one.first().counts == CapRule::kYields;
    if (!own && !spills) continue;
    for (std::string& name : QosNames(one, policy)) names.push_back(std::move(name));
  }
  return Join(names, ",");
}

std::string EnforcedTres(const Policy& policy) {
  std::vector<std::string> names = {"gres/gpu"};
  for (const TypedGpus& kind : GpusOf(policy)) names.push_back(StrCat("gres/gpu:", kind.type));
  return Join(names, ",");
}

}  // namespace

std::string PartitionQos(const PolicyPartition& partition) {
  return StrCat("part-", partition.name);
}

int CpusPerGpuOf(const Policy& policy, const PolicyPartition& partition) {
  if (partition.cpus_per_gpu > 0) return partition.cpus_per_gpu;
  const std::unordered_set<std::string> wanted(partition.nodes.begin(), partition.nodes.end());
  int least = 0;
  for (const PolicyNodes& nodes : policy.nodes) {
    const bool in = wanted.empty() || std::ranges::any_of(nodes.names, [&](const std::string& name) {
                      return wanted.contains(name);
                    });
    if (in && nodes.cpus_per_gpu > 0)
      least = least == 0 ? nodes.cpus_per_gpu : std::min(least, nodes.cpus_per_gpu);
  }
  return least;
}

std::vector<PlannedPartition> PlanPartitions(const Policy& policy,
                                             const std::vector<PreemptionClass>& classes) {
  std::vector<PlannedPartition> planned;
  for (const PolicyPartition& partition : policy.partitions) {
    PlannedPartition line;
    line.name = partition.name;
    line.fields = {
        {"Nodes", NodesText(policy, partition)},
        {"Default", partition.is_default ? "YES" : "NO"},
        {"PriorityTier", StrCat(partition.priority)},
        {"MaxTime", TimeText(partition.max_time_s)},
        {"DefaultTime", partition.default_time_s == 0 ? "NONE" : TimeText(partition.default_time_s)},
        {"MaxNodes", partition.nodes_per_job ? StrCat(*partition.nodes_per_job) : "UNLIMITED"},
        {"QOS", PartitionQos(partition)},
        {"AllowAccounts", AccountsText(policy, partition)},
        {"AllowQos", QosText(policy, partition, classes)}};
    if (const int cpus = CpusPerGpuOf(policy, partition); cpus > 0)
      line.fields.emplace_back("DefCpuPerGPU", StrCat(cpus));
    if (partition.mem_per_gpu > 0)
      line.fields.emplace_back("DefMemPerGPU", StrCat(std::max<int64_t>(1, partition.mem_per_gpu / kMebi)));
    planned.push_back(std::move(line));
  }
  return planned;
}

std::vector<PlannedSetting> PlanSettings(const Policy& policy) {
  const PolicyWeights& weights = policy.weights;
  return {
      {"SelectType", "select/cons_tres", false, true},
      {"GresTypes", "gpu", true, true},
      {"AccountingStorageTRES", EnforcedTres(policy), true, true},
      {"AccountingStorageEnforce", "associations,limits,qos", true, true},
      {"PreemptType", "preempt/qos", false, true},
      {"PreemptMode", "REQUEUE", false, true},
      {"JobRequeue", "1"},
      {"SlurmctldParameters", "preempt_send_user_signal", true},
      {"EnforcePartLimits", "ANY"},
      {"PriorityType", "priority/multifactor", false, true},
      {"PriorityWeightFairShare", StrCat(weights.lab_share + weights.user_share)},
      {"PriorityWeightAge", StrCat(weights.age)},
      {"PriorityWeightJobSize", StrCat(weights.size)},
      {"PriorityFavorSmall", "No"},
      {"PriorityMaxAge", FormatSlurmDuration(weights.age_full_s)},
      {"PriorityDecayHalfLife",
       weights.lab_half_life_s == 0 ? "00:00:00" : FormatSlurmDuration(weights.lab_half_life_s)},
  };
}

}  // namespace overcap
