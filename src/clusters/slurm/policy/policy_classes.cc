// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/policy/policy_classes.h"

#include <algorithm>

#include "base/text.h"
#include "clusters/slurm/lab_accounts.h"

namespace overcap {
namespace {

bool Contains(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

std::vector<std::string> VictimsOf(const Policy& policy, const PolicyPartition& by) {
  std::vector<std::string> victims;
  for (const PolicyPartition& partition : policy.partitions) {
    if (Contains(partition.preempted_by, by.name)) victims.push_back(partition.name);
  }
  return victims;
}

bool Alike(const Policy& policy, const PolicyPartition& a, const PolicyPartition& b) {
  return a.counts == b.counts && a.labmates_only == b.labmates_only && a.preempted_by == b.preempted_by &&
         a.grace_s == b.grace_s && a.quantum_s == b.quantum_s && a.charge == b.charge &&
         VictimsOf(policy, a) == VictimsOf(policy, b);
}

}  // namespace

std::vector<PreemptionClass> PreemptionClasses(const Policy& policy) {
  std::vector<PreemptionClass> classes;
  for (const PolicyPartition& partition : policy.partitions) {
    auto found = std::ranges::find_if(
        classes, [&](const PreemptionClass& one) { return Alike(policy, one.first(), partition); });
    if (found == classes.end()) found = classes.insert(classes.end(), PreemptionClass{});
    found->partitions.push_back(&partition);
  }
  for (PreemptionClass& one : classes) {
    const bool has_default = std::ranges::any_of(one.partitions, &PolicyPartition::is_default);
    one.by_lab = one.first().counts != CapRule::kFree || one.first().labmates_only;
    one.name = has_default && one.by_lab ? "" : one.first().name;
  }
  return classes;
}

std::string QosOf(const PreemptionClass& of, std::string_view lab) {
  if (!of.by_lab) return of.name;
  return of.name.empty() ? std::string(lab) : StrCat(lab, "-", of.name);
}

bool LabMayUse(const PreemptionClass& of, std::string_view lab) {
  return std::ranges::any_of(of.partitions, [&](const PolicyPartition* partition) {
    return partition->labs.empty() || Contains(partition->labs, lab);
  });
}

std::vector<std::string> QosNames(const PreemptionClass& of, const Policy& policy) {
  if (!of.by_lab) return {of.name};
  std::vector<std::string> names;
  for (const PolicyLab& lab : policy.labs) {
    if (LabMayUse(of, lab.name)) names.push_back(QosOf(of, lab.name));
  }
  return names;
}

std::string AccountIn(const Policy& policy, std::string_view lab, const PolicyPartition& partition) {
  const bool some_count = std::ranges::any_of(policy.partitions, [&](const PolicyPartition& one) {
    return one.counts != CapRule::kFree && (one.labs.empty() || Contains(one.labs, lab));
  });
  return partition.counts == CapRule::kFree && some_count ? OvercapAccount(lab) : std::string(lab);
}

bool OnlyLabmates(const PreemptionClass& victim) {
  return victim.first().labmates_only && victim.first().counts != CapRule::kYields;
}

bool Preempts(const PreemptionClass& by, const PreemptionClass& victim) {
  return Contains(victim.first().preempted_by, by.first().name);
}

}  // namespace overcap
