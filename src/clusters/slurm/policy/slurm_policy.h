// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "clusters/cluster_policy.h"
#include "clusters/slurm/policy/live_policy.h"
#include "clusters/slurm/slurm_context.h"

namespace overcap {

// A policy on a live Slurm, by its own programs.
class SlurmPolicy : public ClusterPolicy {
 public:
  explicit SlurmPolicy(SlurmContext* context) : context_(context) {}

  Result<PolicyDifference> Compare(const Policy& policy) override;
  Result<void> Make(const PolicyStep& step) override;
  Result<void> WaitUntilKnown(const Policy& policy) override;

 private:
  Result<LivePolicy> Look();
  Result<void> LookAtAccounts(LivePolicy* live);

  SlurmContext* context_;
};

// Whether a call that changes something did what it should. sacctmgr ends with status 1 and "Nothing new
// added" when it was done before: that is fine.
Result<void> ReadPolicyAnswer(const PolicyStep& step, const ToolAnswer& answer, const std::string& cluster);

// Those of `wanted` that `scontrol show assoc_mgr flags=qos` does not name.
std::vector<std::string> UnknownQos(std::string_view assoc_mgr, const std::vector<PlannedQos>& wanted);

}  // namespace overcap
