// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "control/launch.h"
#include "launch/runner.h"

namespace overcap {

// Who starts the ranks and sees them to their end. It takes the signals of this process from now on.
Result<std::unique_ptr<Runner>> MakeRunner(const Launcher& launcher, const LaunchOptions& options,
                                           const LaunchWorld& world);

}  // namespace overcap
