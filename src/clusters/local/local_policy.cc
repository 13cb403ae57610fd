// SPDX-License-Identifier: Apache-2.0
#include "clusters/local/local_policy.h"

#include <algorithm>

#include "base/json_scan.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "model/policy/policy_text.h"

namespace overcap {
namespace {

std::string LabText(const PolicyLab& lab) {
  std::vector<std::string> types;
  for (const TypedGpus& kind : lab.type_caps) types.push_back(StrCat(kind.type, ":", kind.count));
  return StrCat(CountOf(lab.gpu_cap, "GPU"), types.empty() ? "" : StrCat(" (", Join(types, ","), ")"),
                lab.cpu_cap ? StrCat(", ", CountOf(*lab.cpu_cap, "CPU")) : "", ", members ",
                Join(lab.members, " "), lab.admins.empty() ? "" : StrCat(", admins ", Join(lab.admins, " ")));
}

std::string Number(const std::optional<int>& limit) {
  return limit ? StrCat(*limit) : "none";
}

std::string PartitionText(const PolicyPartition& one) {
  return StrCat("priority ", one.priority, ", max_time ", one.max_time_s, "s, counts ",
                CapRuleName(one.counts), ", gpus_per_user ", Number(one.per_user.gpus), ", gpus_per_job ",
                Number(one.gpus_per_job), ", preempted_by ",
                one.preempted_by.empty() ? "none" : Join(one.preempted_by, " "), ", grace ", one.grace_s,
                "s, quantum ", one.quantum_s, "s",
                one.labs.empty() ? "" : StrCat(", labs ", Join(one.labs, " ")),
                one.users.empty() ? "" : StrCat(", users ", Join(one.users, " ")));
}

// Of two lists of things with names: what went, what came, what is told otherwise.
template <typename Thing, typename Tell>
void Differ(std::string_view what, const std::vector<Thing>& now, const std::vector<Thing>& wanted,
            const Tell& tell, std::vector<std::string>* lines) {
  const auto find = [](const std::vector<Thing>& in, const std::string& name) {
    return std::ranges::find(in, name, &Thing::name);
  };
  for (const Thing& old : now) {
    if (find(wanted, old.name) == wanted.end())
      lines->push_back(StrCat("remove ", what, " '", old.name, "'"));
  }
  for (const Thing& one : wanted) {
    const auto old = find(now, one.name);
    if (old == now.end())
      lines->push_back(StrCat("add ", what, " '", one.name, "': ", tell(one)));
    else if (tell(*old) != tell(one))
      lines->push_back(StrCat(what, " '", one.name, "': ", tell(*old), " -> ", tell(one)));
  }
}

}  // namespace

std::vector<std::string> PolicyChanges(const Policy* now, const Policy& wanted) {
  const Policy none;
  const Policy& old = now == nullptr ? none : *now;
  std::vector<std::string> lines;
  Differ("lab", old.labs, wanted.labs, LabText, &lines);
  Differ("partition", old.partitions, wanted.partitions, PartitionText, &lines);
  if (lines.empty()) lines.emplace_back("keep the new text of the file");
  return lines;
}

Result<void> LocalPolicy::Send(bool check) {
  JsonWriter request;
  request.BeginObject().Field("op", "policy").Field("text", text_).Field("file", "the policy");
  OC_TRY_VOID(call_(request.Field("check", check).EndObject().Text()));
  return {};
}

Result<std::string> LocalPolicy::TextInForce() {
  OC_TRY(reply, call_(JsonWriter().BeginObject().Field("op", "policy").EndObject().Text()));
  return JsonString(JsonMember(reply, "text")).value_or("");
}

Result<std::optional<Policy>> LocalPolicy::InForce() {
  OC_TRY(text, TextInForce());
  if (text.empty()) return std::optional<Policy>();
  OC_TRY(policy, ParsePolicy(text, "policy.yaml"));
  return std::optional(std::move(policy));
}

Result<PolicyDifference> LocalPolicy::Compare(const Policy& policy) {
  OC_TRY(text, TextInForce());
  PolicyDifference difference;
  if (text == text_) return difference;
  OC_TRY_VOID(Send(true));
  const PolicyReading now = ReadPolicy(text);
  for (const std::string& line : PolicyChanges(text.empty() ? nullptr : &now.policy, policy))
    difference.steps.push_back({line, {}, false});
  return difference;
}

Result<void> LocalPolicy::Make(const PolicyStep&) {
  if (sent_) return {};
  OC_TRY_VOID(Send(false));
  sent_ = true;
  return {};
}

Result<void> LocalPolicy::ReadFilesAgain(const Policy&) {
  return {};
}

}  // namespace overcap
