// SPDX-License-Identifier: Apache-2.0
// Commands that are the engine, not clients of it; they stand here because the command line may not know it.
#pragma once

#include "cli/command.h"

namespace overcap {

extern const cli::Command kDaemon;         // run it in the foreground
extern const cli::Command kDaemonRecover;  // mend a damaged journal

}  // namespace overcap
