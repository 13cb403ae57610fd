// SPDX-License-Identifier: Apache-2.0
// The calls of `sacctmgr` and `scontrol` that make one thing of a plan, or change it from what it is. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "clusters/cluster_policy.h"
#include "clusters/slurm/policy/live_policy.h"
#include "clusters/slurm/policy/policy_plan.h"

namespace overcap {

// The step that makes it, or nothing when `live` is so already; live nullptr: it is not there.
std::optional<PolicyStep> QosStep(const PlannedQos& wanted, const PlannedQos* live);
std::optional<PolicyStep> AccountStep(const PlannedAccount& wanted, const PlannedAccount* live,
                                      std::string_view cluster);
std::optional<PolicyStep> ReservationStep(const PolicyMaintenance& wanted,
                                          const std::vector<std::string>& all_nodes,
                                          const LiveReservation* live);

PolicyStep AddUsersStep(const std::string& account, const std::vector<std::string>& users,
                        std::string_view cluster);
PolicyStep RemoveUsersStep(const std::string& account, const std::vector<std::string>& users,
                           std::string_view cluster);
PolicyStep DefaultAccountStep(const std::string& user, const std::string& account, std::string_view cluster);
// Of a job that has not started: Slurm changes no other's.
PolicyStep MoveJobStep(const std::string& job, const std::string& account);
PolicyStep AdminStep(const std::string& user);
PolicyStep CoordinatorsStep(const std::string& account, const std::vector<std::string>& users, bool add);

}  // namespace overcap
