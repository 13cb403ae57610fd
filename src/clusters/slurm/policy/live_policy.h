// SPDX-License-Identifier: Apache-2.0
// What a live Slurm has of what a policy says, as `sacctmgr` and `scontrol` tell it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "clusters/slurm/config_text.h"
#include "clusters/slurm/policy/policy_plan.h"

namespace overcap {

using SlurmFields = std::map<std::string, std::string, std::less<>>;  // of "Name=value Name=value"

struct LiveUser {
  std::string default_account, admin_level;
};

struct LiveReservation {
  std::string name = {}, nodes = {};
  int64_t start_us = 0, end_us = 0;
};

// One that has not ended.
struct LiveJob {
  std::string id = {}, account = {}, qos = {};  // id as Slurm's programs name it: "12", "12_[3-5]"
  bool pending = false;
};

struct LivePolicy {
  SlurmConfig config;
  std::vector<PlannedQos> qos;
  std::vector<PlannedAccount> accounts;  // of this cluster alone
  std::map<std::string, LiveUser> users;
  std::map<std::string, SlurmFields> partitions;
  std::vector<LiveReservation> reservations;
  std::vector<LiveJob> jobs;
  std::map<std::string, std::vector<TypedGpus>> nodes;  // the GPUs of each, by normal type
};

std::vector<std::string> PolicyQosCommand();
std::vector<std::string> PolicyAssociationsCommand(std::string_view cluster);
std::vector<std::string> CoordinatorsCommand();
std::vector<std::string> PolicyUsersCommand();
std::vector<std::string> ReservationsCommand();
std::vector<std::string> PolicyNodesCommand();
std::vector<std::string> PolicyJobsCommand();

// Each kCorrupt when the text is cut off or is not what the command prints.
Result<std::vector<PlannedQos>> ParsePolicyQos(std::string_view text);
Result<std::vector<PlannedAccount>> ParsePolicyAssociations(std::string_view text);
Result<std::map<std::string, std::vector<std::string>>> ParseCoordinators(
    std::string_view text);  // by account
Result<std::map<std::string, LiveUser>> ParsePolicyUsers(std::string_view text);
Result<std::map<std::string, SlurmFields>> ParsePartitionFields(std::string_view text);
Result<std::vector<LiveReservation>> ParseReservations(std::string_view text);
Result<std::map<std::string, std::vector<TypedGpus>>> ParsePolicyNodes(std::string_view text);
Result<std::vector<LiveJob>> ParsePolicyJobs(std::string_view text);

TresLimits ParseTresLimits(std::string_view text);  // what is not "name=count" is left out

}  // namespace overcap
