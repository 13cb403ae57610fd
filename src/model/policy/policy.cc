// SPDX-License-Identifier: Apache-2.0
#include "model/policy/policy.h"

#include <algorithm>
#include <cctype>

namespace overcap {
namespace {

template <typename T>
const T* FindNamed(const std::vector<T>& things, std::string_view name) {
  const auto found = std::ranges::find(things, name, &T::name);
  return found == things.end() ? nullptr : &*found;
}

bool Contains(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

constexpr int64_t kHour = 3600, kDay = 24 * kHour;

PolicyPartition Plain(const char* name, int priority, int64_t max_time_s) {
  PolicyPartition partition;
  partition.name = name;
  partition.priority = priority;
  partition.max_time_s = partition.default_time_s = max_time_s;
  return partition;
}

PolicyPartition Preemptable(const char* name, int priority, CapRule counts,
                            std::vector<std::string> preempted_by) {
  PolicyPartition partition = Plain(name, priority, 2 * kDay);
  partition.counts = counts;
  partition.preempted_by = std::move(preempted_by);
  partition.labmates_only = counts == CapRule::kYields;
  partition.grace_s = kDefaultGraceSeconds;
  partition.quantum_s = kDefaultQuantumSeconds;
  return partition;
}

}  // namespace

std::string_view CapRuleName(CapRule rule) {
  switch (rule) {
    case CapRule::kCounts:
      return "yes";
    case CapRule::kYields:
      return "yields";
    case CapRule::kFree:
      return "no";
  }
  return "yes";
}

std::vector<PolicyPartition> BuiltInPartitions() {
  std::vector<PolicyPartition> partitions = {
      Plain("debug", 40, 4 * kHour),
      Plain("short", 30, 2 * kDay),
      Plain("long", 20, 7 * kDay),
      Preemptable("user-overcap", 10, CapRule::kYields, {"debug", "short", "long"}),
      Preemptable("overcap", 0, CapRule::kFree, {"debug", "short", "long", "user-overcap"}),
  };
  partitions[0].per_user.gpus = 5;
  partitions[1].is_default = true;
  return partitions;
}

const PolicyLab* FindPolicyLab(const Policy& policy, std::string_view name) {
  return FindNamed(policy.labs, name);
}

const PolicyPartition* FindPolicyPartition(const Policy& policy, std::string_view name) {
  return FindNamed(policy.partitions, name);
}

const PolicyPartition* DefaultPartition(const Policy& policy) {
  const auto found = std::ranges::find(policy.partitions, true, &PolicyPartition::is_default);
  if (found != policy.partitions.end()) return &*found;
  return policy.partitions.empty() ? nullptr : &policy.partitions.front();
}

bool IsMember(const PolicyLab& lab, std::string_view user) {
  return std::ranges::binary_search(lab.members, user);
}

std::vector<std::string> LabsOf(const Policy& policy, std::string_view user) {
  std::vector<std::string> labs;
  for (const PolicyLab& lab : policy.labs) {
    if (IsMember(lab, user)) labs.push_back(lab.name);
  }
  const auto named = policy.default_labs.find(std::string(user));
  if (named == policy.default_labs.end()) return labs;
  const auto place = std::ranges::find(labs, named->second);
  if (place != labs.end()) std::rotate(labs.begin(), place, place + 1);
  return labs;
}

PolicyUserLimits LimitsOf(const PolicyLab& lab, std::string_view user) {
  const auto own = lab.user_limits.find(std::string(user));
  return own == lab.user_limits.end() ? lab.per_user : own->second;
}

bool MayUse(const PolicyPartition& partition, std::string_view lab, std::string_view user) {
  return (partition.labs.empty() || Contains(partition.labs, lab)) &&
         (partition.users.empty() || Contains(partition.users, user));
}

bool MayPreempt(const PolicyPartition& by, std::string_view by_lab, const PolicyPartition& victim,
                std::string_view victim_lab) {
  return Contains(victim.preempted_by, by.name) && (!victim.labmates_only || by_lab == victim_lab);
}

std::vector<TypedGpus> GpusOf(const Policy& policy) {
  std::map<std::string, int> counts;
  for (const PolicyNodes& nodes : policy.nodes) {
    for (const TypedGpus& kind : nodes.gpus)
      counts[kind.type] += kind.count * static_cast<int>(nodes.names.size());
  }
  std::vector<TypedGpus> gpus;
  for (const auto& [type, count] : counts) gpus.push_back({type, count});
  return gpus;
}

int GpuTotal(const Policy& policy) {
  return GpuCountOf(GpusOf(policy));
}

int64_t CpuTotal(const Policy& policy) {
  int64_t cpus = 0;
  for (const PolicyNodes& nodes : policy.nodes)
    cpus += int64_t{nodes.cpus} * static_cast<int64_t>(nodes.names.size());
  return cpus;
}

size_t NodeTotal(const Policy& policy) {
  size_t count = 0;
  for (const PolicyNodes& nodes : policy.nodes) count += nodes.names.size();
  return count;
}

std::string NormalPolicyGpuType(std::string_view type) {
  std::string normal(type);
  for (char& c : normal) {
    c = c == '-' || c == ' ' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return normal;
}

}  // namespace overcap
