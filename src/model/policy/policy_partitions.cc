// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "model/policy/policy_sections.h"

namespace overcap {
namespace {

constexpr size_t kMaxPartitions = 1000;
constexpr int kMaxPriority = 65000;

// A partition while it is read: some defaults follow from the other keys, and from other partitions.
struct Draft {
  PolicyPartition partition;
  bool has_default_time = false, has_preempted_by = false, has_labmates = false, has_grace = false,
       has_quantum = false;
};

void ReadCounts(const PolicyValue& value, Draft* out) {
  const std::string* text = value.Text("yes, no or yields");
  if (text == nullptr) return;
  if (*text == "yes" || *text == "true")
    out->partition.counts = CapRule::kCounts;
  else if (*text == "no" || *text == "false")
    out->partition.counts = CapRule::kFree;
  else if (*text == "yields")
    out->partition.counts = CapRule::kYields;
  else
    value.Wrong("yes, no or yields");
}

void ReadPositive(const PolicyValue& value, std::optional<int>* out) {
  if (value.IsNone()) return out->reset();
  int count = 0;
  value.Count(1, kMaxPolicyCount, &count);
  if (count > 0) *out = count;
}

using V = const PolicyValue&;

// "labs: []" shuts everybody out, where no key at all means everybody.
bool HasNobody(const PolicyValue& value) {
  if (value.node().kind != YamlTree::Kind::kList || !value.node().items.empty()) return false;
  value.notes().Error(value.line(), StrCat(value.name(), " is empty: nobody may use the partition"),
                      "leave it out, and everybody may");
  return true;
}

constexpr PolicyKey<Draft> kKeys[] = {
    {"priority", [](V value, Draft* out) { value.Count(0, kMaxPriority, &out->partition.priority); }},
    {"max_time", [](V value, Draft* out) { value.DurationOrNone(&out->partition.max_time_s); }},
    {"default_time",
     [](V value, Draft* out) {
       out->has_default_time = true;
       value.DurationOrNone(&out->partition.default_time_s);
     }},
    {"gpus_per_user", [](V value, Draft* out) { value.CountOrNone(&out->partition.per_user.gpus); }},
    {"cpus_per_user", [](V value, Draft* out) { value.CountOrNone(&out->partition.per_user.cpus); }},
    {"jobs_per_user", [](V value, Draft* out) { value.CountOrNone(&out->partition.per_user.jobs); }},
    {"gpus_per_job", [](V value, Draft* out) { value.CountOrNone(&out->partition.gpus_per_job); }},
    {"nodes_per_job", [](V value, Draft* out) { ReadPositive(value, &out->partition.nodes_per_job); }},
    {"cpus_per_gpu",
     [](V value, Draft* out) { value.Count(0, kMaxPolicyCount, &out->partition.cpus_per_gpu); }},
    {"mem_per_gpu", [](V value, Draft* out) { value.Bytes(&out->partition.mem_per_gpu); }},
    {"counts", ReadCounts},
    {"preempted_by",
     [](V value, Draft* out) {
       out->has_preempted_by = true;
       value.Names(&out->partition.preempted_by);
     }},
    {"labmates_only",
     [](V value, Draft* out) {
       out->has_labmates = true;
       value.Switch(&out->partition.labmates_only);
     }},
    {"grace",
     [](V value, Draft* out) {
       out->has_grace = true;
       value.Duration(3600, &out->partition.grace_s);
     }},
    {"quantum",
     [](V value, Draft* out) {
       out->has_quantum = true;
       value.Duration(86400, &out->partition.quantum_s);
     }},
    {"charge", [](V value, Draft* out) { value.Number(0, 1000, &out->partition.charge); }},
    {"labs",
     [](V value, Draft* out) {
       if (!HasNobody(value)) value.Names(&out->partition.labs);
     }},
    {"users",
     [](V value, Draft* out) {
       if (!HasNobody(value)) value.Users(&out->partition.users);
     }},
    {"nodes", [](V value, Draft* out) { value.Hosts(&out->partition.nodes); }},
    {"default", [](V value, Draft* out) { value.Switch(&out->partition.is_default); }},
};

// What the names of the five and their keys are without a word in the file; defaults that follow from others
// are left to Finish().
std::vector<Draft> BuiltInDrafts() {
  std::vector<Draft> drafts;
  for (PolicyPartition& partition : BuiltInPartitions()) {
    partition.preempted_by.clear();
    partition.is_default = false;
    drafts.push_back({std::move(partition)});
  }
  return drafts;
}

void ReadOne(const std::string& name, const PolicyValue& value, std::vector<Draft>* drafts) {
  const auto known =
      std::ranges::find(*drafts, name, [](const Draft& draft) { return draft.partition.name; });
  if (value.IsNone()) {
    if (known == drafts->end())
      return value.notes().Error(value.line(),
                                 StrCat("there is no partition ", Quoted(name), " to take away"));
    drafts->erase(known);
    return;
  }
  Draft draft;
  if (known != drafts->end()) draft = *known;
  if (!IsPolicyName(name))
    value.notes().Error(value.line(), StrCat(Quoted(name), " is no name of a partition"));
  draft.partition.name = name;
  draft.partition.line = value.line();
  ReadPolicyMap<Draft>(&value.notes(), value.node(), StrCat("partition ", Quoted(name)), kKeys, &draft);
  if (known != drafts->end())
    *known = std::move(draft);
  else
    drafts->push_back(std::move(draft));
}

// Partitions whose jobs by default may stop those of one with this rule.
std::vector<std::string> PreemptorsOf(const Draft& victim, const std::vector<Draft>& drafts) {
  std::vector<std::string> names;
  for (const Draft& draft : drafts) {
    const CapRule rule = draft.partition.counts;
    const bool in_full = rule == CapRule::kCounts && victim.partition.counts != CapRule::kCounts;
    const bool yields = rule == CapRule::kYields && victim.partition.counts == CapRule::kFree;
    if (in_full || yields) names.push_back(draft.partition.name);
  }
  return names;
}

void Finish(std::vector<Draft>* drafts) {
  for (Draft& draft : *drafts) {
    PolicyPartition& partition = draft.partition;
    if (!draft.has_preempted_by) partition.preempted_by = PreemptorsOf(draft, *drafts);
    const bool preempted = !partition.preempted_by.empty();
    if (!draft.has_labmates) partition.labmates_only = preempted && partition.counts == CapRule::kYields;
    if (!draft.has_grace) partition.grace_s = preempted ? kDefaultGraceSeconds : 0;
    if (!draft.has_quantum) partition.quantum_s = preempted ? kDefaultQuantumSeconds : 0;
    if (!draft.has_default_time) partition.default_time_s = partition.max_time_s;
  }
}

void ChooseDefault(std::vector<PolicyPartition>* partitions) {
  if (std::ranges::any_of(*partitions, &PolicyPartition::is_default)) return;
  auto chosen = std::ranges::find(*partitions, "short", &PolicyPartition::name);
  if (chosen == partitions->end()) {
    chosen = std::ranges::find_if(*partitions, [](const PolicyPartition& partition) {
      return partition.counts == CapRule::kCounts && partition.per_user == PolicyUserLimits{};
    });
  }
  if (chosen == partitions->end()) chosen = partitions->begin();
  if (chosen != partitions->end()) chosen->is_default = true;
}

}  // namespace

void ReadPolicyPartitions(PolicyNotes* notes, const PolicyValue* value, Policy* policy) {
  std::vector<Draft> drafts = BuiltInDrafts();
  if (value != nullptr) {
    for (const auto& [name, entry] : PolicyEntries(notes, value->node(), value->name())) {
      if (drafts.size() >= kMaxPartitions) return notes->Error(entry.line(), "too many partitions");
      ReadOne(name, entry, &drafts);
    }
  }
  std::ranges::stable_sort(drafts, [](const Draft& a, const Draft& b) {
    return a.partition.priority != b.partition.priority ? a.partition.priority > b.partition.priority
                                                        : a.partition.name < b.partition.name;
  });
  Finish(&drafts);
  for (Draft& draft : drafts) policy->partitions.push_back(std::move(draft.partition));
  ChooseDefault(&policy->partitions);
}

}  // namespace overcap
