// SPDX-License-Identifier: Apache-2.0
// The parts of PrepareLaunch that a retry needs again.
#pragma once

#include <string>

#include "control/launch.h"
#include "launch/runner.h"

namespace overcap {

// The launcher's command line for the plan as it is now.
Result<LaunchCommand> ComposeFor(const PreparedLaunch& prepared, const LaunchOptions& options,
                                 const LaunchWorld& world, const std::string& hostfile, bool linked);

// What only our own spawners need: processors of the ranks, how ssh is called.
Result<void> FillOwnSpawner(const PreparedLaunch& prepared, const LaunchWorld& world, Attempt* attempt);

}  // namespace overcap
