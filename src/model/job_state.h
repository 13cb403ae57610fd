// SPDX-License-Identifier: Apache-2.0
// Where a job stands, and how a run of it ended.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace overcap {

enum class JobState {
  kHeld,
  kQueued,
  kRunning,
  kSucceeded,
  kFailed,
  kCancelled,
  kPreempted,
  kLost,
  kUnknown
};
std::string_view JobStateName(JobState state);  // "held", "queued", ...
std::optional<JobState> JobStateFromName(std::string_view name);
bool IsFinal(JobState state);  // succeeded, failed, cancelled, lost: nothing more will happen

// How a process, attempt or task ended.
struct Ending {
  JobState state = JobState::kUnknown;
  int exit_status = -1;  // the command's own; 128 + signal when it died by one
  int signal = 0;
  int first_failed_rank = -1;  // -1: none
  std::string reason;          // "time limit of 10s reached", "cancelled by user", ...; may be empty
  bool operator==(const Ending&) const = default;
};

}  // namespace overcap
