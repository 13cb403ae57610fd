// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/job_spec.h"
#include "model/job_state.h"
#include "sys/supervisor.h"

namespace overcap {

constexpr int kTimeLimitStatus = 124;    // as timeout(1)
constexpr int kMemoryLimitStatus = 137;  // as a process that was killed
constexpr int kCannotRunStatus = 126;    // what the ranks need could not be prepared

// What the end of a group of ranks means for their attempt or task. `kernel_killed`: for want of memory.
Ending EndingOf(const GroupEnd& end, const Resources& resources, bool kernel_killed);
// A job goes back to the queue whose script has asked for that, and one with requeue_on_timeout that ended at
// its time limit or after the warning before it. Any other end is returned as it is.
Ending BeforeItsNextAttempt(Ending ending, const GroupEnd& end, const JobSpec& spec, bool requeue_asked);
// Nothing was run.
Ending CannotRun(const std::string& reason);

}  // namespace overcap
