// SPDX-License-Identifier: Apache-2.0
#include "clusters/local/local_policy.h"

#include "base/json_scan.h"
#include "base/json_writer.h"
#include "clusters/local/policy_changes.h"
#include "model/policy/policy_text.h"

namespace overcap {
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

}  // namespace overcap
