// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "base/result.h"
#include "sys/process.h"

namespace overcap {

struct Captured {
  ProcessEnd end;
  std::string output;  // stdout and stderr, as they came
};

// Runs a helper program to its end and gives the first `max_output` bytes of what it printed. kUnavailable
// when it is not done in time: then its process group is killed and waited for. A process that nothing can
// kill is left to the kernel.
Result<Captured> CaptureOutput(SpawnRequest request, std::chrono::milliseconds timeout,
                               size_t max_output = 1 << 20);

}  // namespace overcap
