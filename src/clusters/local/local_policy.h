// SPDX-License-Identifier: Apache-2.0
// The policy of the embedded engine, which reads the file itself.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "clusters/cluster_policy.h"

namespace overcap {

class LocalPolicy : public ClusterPolicy {
 public:
  using Call = std::function<Result<std::string>(std::string_view request)>;
  // `call` sends a request of docs/formats/api.md and gives what `ok` says.
  explicit LocalPolicy(Call call) : call_(std::move(call)) {}

  void TakeText(const std::string& text) override { text_ = text; }
  Result<std::optional<Policy>> InForce() override;
  Result<PolicyDifference> Compare(const Policy& policy) override;
  // The whole policy goes at once, with the first step.
  Result<void> Make(const PolicyStep& step) override;

 private:
  Result<std::string> TextInForce();
  Result<void> Send(bool check);

  Call call_;
  std::string text_;
  bool sent_ = false;
};

}  // namespace overcap
