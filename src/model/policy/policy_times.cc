// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "model/policy/policy_sections.h"

namespace overcap {
namespace {

constexpr size_t kMaxMaintenance = 10'000;

struct Draft {
  PolicyMaintenance maintenance;
  int64_t start_us = -1, end_us = -1, duration_s = 0;
};

using V = const PolicyValue&;

constexpr PolicyKey<Draft> kKeys[] = {
    {"name", [](V value, Draft* out) { value.Name(&out->maintenance.name); }},
    {"nodes", [](V value, Draft* out) { value.Hosts(&out->maintenance.nodes); }},
    {"start", [](V value, Draft* out) { value.Time(&out->start_us); }},
    {"end", [](V value, Draft* out) { value.Time(&out->end_us); }},
    {"duration", [](V value, Draft* out) { value.Duration(int64_t{366} * 86400, &out->duration_s); }},
};

void ReadOne(PolicyNotes* notes, const YamlTree& node, size_t number, Policy* policy) {
  Draft draft;
  draft.maintenance.name = StrCat("maintenance-", number);
  draft.maintenance.line = node.line;
  const std::string owner = StrCat("maintenance ", number);
  ReadPolicyMap<Draft>(notes, node, owner, kKeys, &draft);
  if (draft.start_us < 0) return notes->Error(node.line, StrCat(owner, " has no 'start'"));
  if ((draft.end_us < 0) == (draft.duration_s == 0))
    return notes->Error(node.line, StrCat(owner, " must have one of 'duration' and 'end'"));
  draft.maintenance.start_us = draft.start_us;
  draft.maintenance.end_us = draft.end_us >= 0 ? draft.end_us : draft.start_us + draft.duration_s * 1'000'000;
  policy->maintenance.push_back(std::move(draft.maintenance));
}

void Weight(const PolicyValue& value, int* out) {
  value.Count(0, kMaxPolicyCount, out);
}

constexpr PolicyKey<PolicyWeights> kWeightKeys[] = {
    {"lab_share", [](V value, PolicyWeights* out) { Weight(value, &out->lab_share); }},
    {"user_share", [](V value, PolicyWeights* out) { Weight(value, &out->user_share); }},
    {"age", [](V value, PolicyWeights* out) { Weight(value, &out->age); }},
    {"size", [](V value, PolicyWeights* out) { Weight(value, &out->size); }},
    {"age_full", [](V value, PolicyWeights* out) { value.DurationOrNone(&out->age_full_s); }},
    {"lab_half_life", [](V value, PolicyWeights* out) { value.DurationOrNone(&out->lab_half_life_s); }},
    {"user_half_life", [](V value, PolicyWeights* out) { value.DurationOrNone(&out->user_half_life_s); }},
};

}  // namespace

void ReadPolicyMaintenance(const PolicyValue& value, Policy* policy) {
  if (value.node().kind != YamlTree::Kind::kList)
    return value.notes().Error(value.line(), "'maintenance' must be a list of '- {...}' lines");
  if (value.node().items.size() > kMaxMaintenance)
    return value.notes().Error(value.line(), "'maintenance' has too many entries");
  size_t number = 0;
  for (const YamlTree& item : value.node().items) ReadOne(&value.notes(), item, ++number, policy);
  std::ranges::stable_sort(policy->maintenance, {}, &PolicyMaintenance::start_us);
}

void ReadPolicyWeights(const PolicyValue& value, Policy* policy) {
  ReadPolicyMap<PolicyWeights>(&value.notes(), value.node(), value.name(), kWeightKeys, &policy->weights);
  if (policy->weights.age_full_s == 0) {
    value.notes().Error(value.line(), "'age_full' of 'weights' must be a duration such as 7d");
  }
}

}  // namespace overcap
