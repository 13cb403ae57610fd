// SPDX-License-Identifier: Apache-2.0
// How drivers differ for those who read the configuration, as data: nobody asks for a driver's name.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "sys/variables.h"

namespace overcap {

struct Policy;           // model/policy/policy.h
struct PolicyRendering;  // cluster_policy.h

struct DriverTraits {
  std::string_view name;
  // Its clusters are driven by a scheduler's own programs: SchedulerSettings are theirs, and what the machine
  // has is not ours to declare.
  bool scheduler = false;
  // A cluster of the driver's name is there by itself where this program is on PATH; "": never.
  std::string_view program = {};
  // Or where this socket is, which `machine_variable` may name instead.
  std::string_view socket = {};
  std::string_view machine_variable = {};
  // Whether a machine where `program` is found at this path belongs to such a cluster; nullptr: it does where
  // `machine_variable` is set or the socket is there.
  bool (*is_set_up)(const Variables& variables, std::string_view program,
                    const std::function<bool(const std::string& path)>& exists) = nullptr;
  std::string_view job_variable = {};  // set inside of the cluster's jobs
  // What its scheduler must be told to follow a policy; nullptr: it cannot be told.
  Result<PolicyRendering> (*render_policy)(const Policy& policy) = nullptr;
  // Where this user's jobs and store stand on such a cluster; nullptr: where the configuration says.
  // `needed`: a service that does not answer is asked again for a while.
  Result<std::string> (*find_root)(bool needed) = nullptr;
};

}  // namespace overcap
