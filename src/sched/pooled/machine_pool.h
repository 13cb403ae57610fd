// SPDX-License-Identifier: Apache-2.0
// One machine as a pool: its GPUs of one type are one node. What it has is what was found or declared there;
// labs, partitions and times come from the policy. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "model/job_spec.h"
#include "model/machine.h"
#include "model/policy/policy.h"
#include "sched/pooled/live_pool.h"
#include "sched/pooled/pool_job.h"
#include "sched/pooled/rules.h"

namespace overcap::pooled {

// Which lab a job counts for: the one that it has, else the one that it asks for or the default of its user.
Result<std::string> LabOf(const Policy& policy, const JobSpec& spec);

// The host of the policy that this machine is: that of its name, or the only one. kUsage: there is none, or,
// with `exact`, it does not have the GPUs that the policy gives it.
Result<std::string> HostOf(const Policy& policy, const Machine& machine, bool exact);

class MachinePool {
 public:
  // kUsage as HostOf().
  static Result<MachinePool> Make(Policy policy, const Machine& machine, bool exact);

  const Policy& policy() const { return policy_; }
  const Rules& rules() const { return rules_; }
  const std::vector<LiveAccount>& accounts() const { return accounts_; }

  // A job as the scheduler reads it. Makes the account of its user and lab if that is new. kUsage and kDenied
  // say what of it the policy never allows; the scheduler has a word in it too (Refusal).
  Result<PoolJob> Take(const JobSpec& spec, uint64_t key);
  // One that runs: whatever the policy says of it now, it must stand somewhere.
  PoolJob TakeRunning(const JobSpec& spec, uint64_t key);
  // The partition of this name; if there is none any longer, the one to which a run is counted instead.
  int PartitionAt(std::string_view name) const;

  // The GPUs (Gpu::index) of an allocation as the scheduler has them, and back.
  std::vector<GpuShare> SharesOf(const std::vector<int>& gpus) const;
  std::vector<int> GpusOf(const std::vector<GpuShare>& shares) const;

 private:
  MachinePool(Policy policy, Rules rules) : policy_(std::move(policy)), rules_(std::move(rules)) {}
  int AccountAt(const std::string& lab, const std::string& user);
  Result<uint64_t> PartitionsOf(const JobSpec& spec, const std::string& lab) const;
  PoolJob JobOf(const JobSpec& spec, uint64_t key, int account, uint64_t partitions) const;

  Policy policy_;
  Rules rules_;
  std::vector<std::vector<int>> gpus_;  // by node and bit: Gpu::index
  std::vector<LiveAccount> accounts_;
  std::vector<std::string> users_;  // by the number that the scheduler knows them by
};

}  // namespace overcap::pooled
