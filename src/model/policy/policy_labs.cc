// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "model/policy/policy_sections.h"

namespace overcap {
namespace {

constexpr size_t kMaxLabs = 10'000;

// A lab while it is read: what is not said has a default that follows from the rest.
struct LabDraft {
  PolicyLab lab;
  bool has_cap = false;
  struct Limits {
    std::string user;
    const YamlTree* node = nullptr;
    int line = 0;
  };
  std::vector<Limits> limits;  // read when per_user is known
};

constexpr PolicyKey<PolicyUserLimits> kLimitKeys[] = {
    {"gpus", [](const PolicyValue& value, PolicyUserLimits* out) { value.CountOrNone(&out->gpus); }},
    {"cpus", [](const PolicyValue& value, PolicyUserLimits* out) { value.CountOrNone(&out->cpus); }},
    {"jobs", [](const PolicyValue& value, PolicyUserLimits* out) { value.CountOrNone(&out->jobs); }},
};

// A count, or {total: 16, a40: 8}.
void ReadCap(const PolicyValue& value, LabDraft* out) {
  out->has_cap = true;
  if (!value.IsMap()) return value.Count(0, kMaxPolicyCount, &out->lab.gpu_cap);
  std::optional<int> total;
  int64_t sum = 0;
  for (const auto& [type, entry] : PolicyEntries(&value.notes(), value.node(), value.name())) {
    int count = -1;
    entry.Count(0, kMaxPolicyCount, &count);
    if (count < 0) continue;
    if (type == "total") {
      total = count;
    } else if (!IsPolicyName(type)) {
      value.notes().Error(entry.line(), StrCat(Quoted(type), " in ", value.name(), " is no GPU type"));
    } else {
      sum += count;
      out->lab.type_caps.push_back({NormalPolicyGpuType(type), count});
    }
  }
  out->lab.gpu_cap = total ? *total : static_cast<int>(std::min<int64_t>(sum, kMaxPolicyCount));
}

void CollectUserLimits(const PolicyValue& value, LabDraft* out) {
  for (const auto& [user, entry] : PolicyEntries(&value.notes(), value.node(), value.name()))
    out->limits.push_back({user, &entry.node(), entry.line()});
}

constexpr PolicyKey<LabDraft> kKeys[] = {
    {"gpus", ReadCap},
    {"cpus", [](const PolicyValue& value, LabDraft* out) { value.CountOrNone(&out->lab.cpu_cap); }},
    {"members", [](const PolicyValue& value, LabDraft* out) { value.Users(&out->lab.members); }},
    {"admins", [](const PolicyValue& value, LabDraft* out) { value.Users(&out->lab.admins); }},
    {"shares", [](const PolicyValue& value, LabDraft* out) { value.Number(1e-6, 1e6, &out->lab.shares); }},
    {"per_user",
     [](const PolicyValue& value, LabDraft* out) {
       ReadPolicyMap<PolicyUserLimits>(&value.notes(), value.node(), value.name(), kLimitKeys,
                                       &out->lab.per_user);
     }},
    {"user_limits", CollectUserLimits},
};

// "96 ann bob".
void ReadShort(const PolicyValue& value, LabDraft* draft) {
  constexpr std::string_view kMustBe = "a mapping, or the cap and the members: 16 ann bob";
  const std::string* text = value.Text(kMustBe);
  if (text == nullptr) return;
  std::vector<std::string> words = PolicyWords(*text);
  const auto cap = words.empty() ? std::nullopt : ParseInt(words[0]);
  if (!cap || *cap < 0 || *cap > kMaxPolicyCount) return value.Wrong(kMustBe);
  draft->has_cap = true;
  draft->lab.gpu_cap = static_cast<int>(*cap);
  for (size_t i = 1; i < words.size(); i++) {
    if (!IsPolicyUser(words[i]))
      return value.notes().Error(value.line(), StrCat(Quoted(words[i]), " in ", value.name(), " is no user"));
    draft->lab.members.push_back(words[i]);
  }
}

void Finish(const std::string& owner, PolicyNotes* notes, LabDraft* draft) {
  PolicyLab& lab = draft->lab;
  if (!draft->has_cap)
    notes->Error(lab.line, StrCat(owner, " has no 'gpus'"), "say how many it may have at the same time");
  lab.members.insert(lab.members.end(), lab.admins.begin(), lab.admins.end());
  std::ranges::sort(lab.members);
  lab.members.erase(std::unique(lab.members.begin(), lab.members.end()), lab.members.end());
  if (lab.shares <= 0) lab.shares = std::max(1, lab.gpu_cap);
  for (const LabDraft::Limits& one : draft->limits) {
    PolicyUserLimits limits = lab.per_user;
    const std::string name = StrCat(Quoted(one.user), " in 'user_limits' of ", owner);
    ReadPolicyMap<PolicyUserLimits>(notes, *one.node, name, kLimitKeys, &limits);
    if (!IsMember(lab, one.user)) notes->Error(one.line, StrCat(name, " is no member"));
    lab.user_limits[one.user] = limits;
  }
}

PolicyLab ReadOne(const std::string& name, const PolicyValue& value) {
  const std::string owner = StrCat("lab ", Quoted(name));
  LabDraft draft;
  draft.lab.name = name;
  draft.lab.line = value.line();
  draft.lab.shares = 0;
  if (!IsPolicyName(name)) value.notes().Error(value.line(), StrCat(Quoted(name), " is no name of a lab"));
  if (value.IsMap())
    ReadPolicyMap<LabDraft>(&value.notes(), value.node(), owner, kKeys, &draft);
  else
    ReadShort(value, &draft);
  Finish(owner, &value.notes(), &draft);
  return std::move(draft.lab);
}

}  // namespace

void ReadPolicyLabs(const PolicyValue& value, Policy* policy) {
  for (const auto& [name, entry] : PolicyEntries(&value.notes(), value.node(), value.name())) {
    if (policy->labs.size() == kMaxLabs) return value.notes().Error(entry.line(), "too many labs");
    policy->labs.push_back(ReadOne(name, entry));
  }
}

void ReadPolicyUsers(const PolicyValue& value, Policy* policy) {
  constexpr PolicyKey<std::string> kUserKeys[] = {
      {"default_lab", [](const PolicyValue& lab, std::string* out) { lab.Name(out); }},
  };
  for (const auto& [user, entry] : PolicyEntries(&value.notes(), value.node(), value.name())) {
    const std::string owner = StrCat("user ", Quoted(user));
    std::string name;
    ReadPolicyMap<std::string>(&value.notes(), entry.node(), owner, kUserKeys, &name);
    if (name.empty()) continue;
    const PolicyLab* lab = FindPolicyLab(*policy, name);
    if (lab == nullptr)
      value.notes().Error(entry.line(), StrCat("'default_lab' of ", owner, ": there is no lab '", name, "'"));
    else if (!IsMember(*lab, user))
      value.notes().Error(entry.line(), StrCat(owner, " is no member of the lab '", name, "'"));
    else
      policy->default_labs[user] = name;
  }
}

}  // namespace overcap
