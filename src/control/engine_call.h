// SPDX-License-Identifier: Apache-2.0
// Speaks to the embedded engine about itself; never starts one.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace overcap {

struct EngineStatus {
  std::string version;
  int pid = 0;
  std::string socket;
  int64_t uptime_seconds = 0;
  std::map<std::string, int64_t> counts;  // jobs by state
  int64_t gpus_free = 0;
  int64_t journal_bytes = 0;
  std::string problem;                 // why the engine cannot write; "": it can
  std::string gpu_problem;             // why jobs can open GPUs that they were not given; "": they cannot
  std::string policy, policy_problem;  // the file of the policy in force, and why another one is not; ""
  std::string json;                    // all that the engine said
};

// Where it listens: of the engine of `root`, or with `system` of the one that all users of the machine share.
std::string EngineSocket(const std::string& root, bool system);

// kNotFound when none runs; kUnavailable when one does not answer within 5 seconds.
Result<EngineStatus> GetEngineStatus(const std::string& socket);

// The engine ends after its reply; running jobs go on. Returns once its process is gone;
// kUnavailable when it is still there after `patience_seconds`. kNotFound when none runs.
Result<void> StopEngine(const std::string& socket, int patience_seconds);

}  // namespace overcap
