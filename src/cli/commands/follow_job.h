// SPDX-License-Identifier: Apache-2.0
// Staying with a job until its end; shared by submit, logs and wait.
#pragma once

#include <string>

#include "cli/world.h"
#include "control/logs.h"

namespace overcap::cli {

// Shows the logs as they grow until the job has ended; its exit status (docs/manual/exit-statuses.md). With
// --json the logs go to stderr and the record is printed at the end. Ctrl-C detaches. While the job waits a
// terminal shows why.
Result<int> FollowJob(World& world, Cluster& cluster, const std::string& id, const LogRequest& request);

// The same without logs.
Result<int> WaitForJob(World& world, Cluster& cluster, const std::string& id);

// Waits until all have ended or the time is over, and says on a terminal what it waits for; whether they
// have.
Result<bool> WaitForAll(World& world, Cluster& cluster, const std::vector<std::string>& ids,
                        int64_t timeout_seconds);

}  // namespace overcap::cli
