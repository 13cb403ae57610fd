// SPDX-License-Identifier: Apache-2.0
#include "model/job_state.h"

#include <array>

namespace overcap {
namespace {

constexpr std::array<std::string_view, 9> kNames = {
    "held", "queued", "running", "succeeded", "failed", "cancelled", "preempted", "lost", "unknown"};

}  // namespace

std::string_view JobStateName(JobState state) {
  return kNames[static_cast<size_t>(state)];
}

std::optional<JobState> JobStateFromName(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<JobState>(i);
  }
  return std::nullopt;
}

bool IsFinal(JobState state) {
  return state == JobState::kSucceeded || state == JobState::kFailed || state == JobState::kCancelled ||
         state == JobState::kLost;
}

}  // namespace overcap
