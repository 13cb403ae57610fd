// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "model/job_record.h"

namespace overcap {

// Exit statuses of `wait` that are no job's own; docs/manual/exit-statuses.md.
constexpr int kStatusCancelled = 130;
constexpr int kStatusLost = 75;       // its agent was killed or the machine went down
constexpr int kStatusTimedOut = 124;  // the time of --timeout was over
constexpr int kStatusDetached = 130;  // Ctrl-C; the job goes on

// What `wait` and `submit --wait` return for an ended job: 0 when it succeeded, its own exit status when it
// failed (1 when it has none).
int JobExitStatus(const JobRecord& record);

// The first that is not 0, in the order given.
int JobsExitStatus(const std::vector<JobRecord>& records);

// "exit status 3", "signal 9 (SIGKILL)": how the job's command ended; "" when it has not.
std::string EndingText(const JobRecord& record);

}  // namespace overcap
