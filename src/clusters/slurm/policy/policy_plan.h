// SPDX-License-Identifier: Apache-2.0
// A policy in Slurm's words: accounts, QOS with caps that preempt each other, partitions, settings. Pure.
//
// Slurm preempts by the QOS of a job, and only where nodes are full, never where a cap is. So partitions that
// give way in the same way share a class, and a class is one QOS, or one for each lab where what runs counts
// against the lab's cap. A lab's cap stands twice: on the QOS that is called as the lab, which alone limits
// what counts in full (a limit of a job's QOS replaces that of its account), and on the lab's account, which
// limits what yields: that has a QOS without a cap, and gets what is left. What does not count has an account
// of its own (lab_accounts.h), or it would take from what is left.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/policy/policy.h"

namespace overcap {

using TresLimits = std::map<std::string, int64_t>;  // "gres/gpu" -> 16

struct PlannedQos {
  std::string name = {};
  int priority = 0;
  std::vector<std::string> preempt = {};  // sorted
  bool requeue = false;                   // its jobs are preempted; else as the cluster says
  int64_t grace_s = 0, exempt_s = 0;
  TresLimits cap = {}, per_user = {}, per_job = {};
  int64_t jobs_per_user = -1;  // -1: no limit
  int64_t max_wall_s = 0;      // 0: no limit
  double usage_factor = 1;
  bool operator==(const PlannedQos&) const = default;
};

struct PlannedAccount {
  std::string name = {}, parent = {};
  TresLimits cap = {};
  int shares = 1;
  std::vector<std::string> qos = {};  // sorted
  std::string default_qos = {};
  std::vector<std::string> users = {}, coordinators = {};  // sorted
  bool operator==(const PlannedAccount&) const = default;
};

// A line of slurm.conf; fields in the order in which they are written.
struct PlannedPartition {
  std::string name = {};
  std::vector<std::pair<std::string, std::string>> fields = {};
};

struct PlannedSetting {
  std::string name, value;
  bool words = false;    // the value is a list of which these must be part
  bool restart = false;  // counts only when slurmctld starts
};

struct SlurmPolicyPlan {
  std::vector<PlannedQos> qos;                          // those that others preempt first
  std::vector<PlannedAccount> accounts;                 // parents first
  std::map<std::string, std::string> default_accounts;  // by user
  std::vector<std::string> admins;
  std::vector<PlannedPartition> partitions;
  std::vector<PlannedSetting> settings;
  std::vector<PolicyMaintenance> maintenance;
  std::vector<PolicyNodes> nodes;
  std::vector<std::string> notes;  // what Slurm cannot do, or does otherwise
};

// kUsage when names of the policy do not go together in Slurm: two QOS or two accounts of one name.
Result<SlurmPolicyPlan> PlanSlurmPolicy(const Policy& policy);

std::string TresText(const TresLimits& limits);  // "cpu=12,gres/gpu=6"

}  // namespace overcap
