// SPDX-License-Identifier: Apache-2.0
// The service behind `workspace auto`: a loop that does what DecideAuto says, until it is told to end.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "control/allocation_end.h"
#include "control/workspace_auto.h"
#include "control/workspace_auto_decide.h"
#include "control/workspace_open.h"

namespace overcap {

// What came of one backup.
struct AutoSaved {
  std::string snapshot;  // the newest; its id
  bool is_new = false;   // false: nothing had changed
  int64_t new_bytes = 0;
  int64_t unread = 0;
};

struct AutoServiceParts {
  AutoRules rules;
  AutoState state;         // who and where it is; the rest is filled in
  std::string state_file;  // "": not kept
  std::string lock_file;
  // Saves. Called from a thread of its own, one at a time; ends soon when `stop` is set.
  std::function<Result<AutoSaved>(const std::atomic<bool>& stop)> save;
  // What the user should know: a line without its end. `important`: also for the job's log.
  std::function<void(std::string_view line, bool important)> tell;
  const Clock* clock = nullptr;
  // When the allocation ends now; null: state.job_end_us is all that is known. Outlives the service.
  const AllocationEndWatch* allocation_end = nullptr;
};

// Takes the lock (kConflict when another has it), calls `ready`, and returns when it was told to end (TERM,
// INT) and has saved or given up: true when the work is saved. USR1 means: save now. HUP means nothing.
Result<bool> RunAutoService(AutoServiceParts parts, const std::function<void()>& ready);

// The allocation that these variables tell of: SLURM_JOB_ID with SLURM_JOB_END_TIME, OVERCAP_JOB_ID.
struct AutoAllocation {
  std::string job;     // "": none
  int64_t end_us = 0;  // wall time; 0: not known
};
AutoAllocation AllocationHere(const Variables& variables);

}  // namespace overcap
