// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

#include "base/result.h"
#include "sys/process.h"

namespace overcap {

struct Captured {
  ProcessEnd end;
  std::string output;  // stdout and stderr, the first MiB
};

// Runs a helper program to its end and gives what it printed. kUnavailable when it is not done in time: then
// its process group is killed and waited for. A process that nothing can kill is left to the kernel.
Result<Captured> CaptureOutput(SpawnRequest request, std::chrono::milliseconds timeout);

}  // namespace overcap
