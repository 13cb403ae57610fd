// SPDX-License-Identifier: Apache-2.0
// When a workspace that looks after itself is saved next. Pure: the service (workspace_auto_service.h) asks
// after whatever happens.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace overcap {

// What the user wants. Microseconds.
struct AutoRules {
  bool on_change = false;
  int64_t every_us = 1'800'000'000;  // without on_change: from the begin of one backup to the next
  int64_t quiet_us = 10'000'000;     // after the last change ...
  int64_t most_us = 120'000'000;     // ... but not later than this after the first
  int64_t check_us = 3'600'000'000;  // everything is looked at again, whatever was told
  int64_t blind_us = 300'000'000;    // the same where changes cannot be watched
  int64_t margin_us = 300'000'000;   // before the end of the allocation
  int64_t last_us = 10'000'000;      // when told to end: at most so long for the last backup's tries

  bool operator==(const AutoRules&) const = default;
};

// What has happened. Times are of one clock that never goes back, microseconds.
struct AutoFacts {
  int64_t now = 0;
  std::optional<int64_t> saved;         // when the last backup that succeeded began
  std::optional<int64_t> checked;       // when the last one that looked at everything and succeeded began
  std::optional<int64_t> tried;         // when the last try ended, whatever came of it
  int failures = 0;                     // tries since the last success
  int64_t took = 0;                     // how long the last successful one took
  std::optional<int64_t> first_change;  // not saved yet
  std::optional<int64_t> last_change;
  bool watched = true;             // every change is told
  std::optional<int64_t> end;      // of the allocation
  std::optional<int64_t> asked;    // the warning signal has come, or a user wants it now
  std::optional<int64_t> stopped;  // told to end
};

enum class AutoAct { kWait, kBackUp, kEnd };
// In the order in which they count.
enum class AutoReason { kNone, kStop, kAsked, kEndNear, kFirst, kRetry, kChanged, kTime, kCheck };
std::string_view AutoReasonText(AutoReason reason);  // "told to end", "the allocation ends soon", ...

struct AutoDecision {
  AutoAct act = AutoAct::kWait;
  AutoReason reason = AutoReason::kNone;  // of the backup; of kWait: of the next one
  bool full = true;                       // look at everything; else only at what was told
  int64_t at = 0;        // kWait: look again then, at the latest; the next backup is due then
  bool unsaved = false;  // kEnd: the last backup did not come about
};

AutoDecision DecideAuto(const AutoRules& rules, const AutoFacts& facts);

// Pause after that many failures: 10 s, doubled each time, 10 minutes at most.
int64_t AutoPauseUs(int failures);

}  // namespace overcap
