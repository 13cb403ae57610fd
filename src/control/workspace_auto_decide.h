// SPDX-License-Identifier: Apache-2.0
// When the service of `workspace auto` (workspace_auto_service.h) saves next. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace overcap {

// What the user wants. Microseconds.
struct AutoRules {
  int64_t every_us = 300'000'000;   // from the start of one backup to the start of the next
  int64_t margin_us = 300'000'000;  // before the end of the allocation
  int64_t last_us = 10'000'000;     // after SIGTERM: at most this long for the last backup's tries

  bool operator==(const AutoRules&) const = default;
};

// What has happened. Times are of one clock that never goes back, microseconds.
struct AutoFacts {
  int64_t now = 0;
  std::optional<int64_t> saved;    // when the last backup that succeeded began
  std::optional<int64_t> tried;    // when the last try ended, successful or not
  int failures = 0;                // tries since the last success
  int64_t took = 0;                // how long the last successful one took
  std::optional<int64_t> end;      // of the allocation
  std::optional<int64_t> asked;    // when SIGUSR1 came: a warning, or a user wants a backup now
  std::optional<int64_t> stopped;  // when SIGTERM came
};

enum class AutoAct { kWait, kBackUp, kEnd };
enum class AutoReason { kStop, kAsked, kEndNear, kFirst, kRetry, kTime };
std::string_view AutoReasonText(AutoReason reason);  // "warned", "the allocation ends soon", ...

struct AutoDecision {
  AutoAct act = AutoAct::kWait;
  AutoReason reason = AutoReason::kTime;  // of the backup; of kWait: of the next one
  int64_t at = 0;                         // kWait: when the next backup is due; decide again then
  bool unsaved = false;                   // kEnd: the last backup failed
};

AutoDecision DecideAuto(const AutoRules& rules, const AutoFacts& facts);

// Pause after that many failures: 10 s, doubled each time, 10 minutes at most.
int64_t AutoPauseUs(int failures);

}  // namespace overcap
