// SPDX-License-Identifier: Apache-2.0
// Runs one of Slurm's programs to its end. Its standard output is data, its standard error is for people:
// a warning must not get among the rows.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

#include "base/result.h"
#include "sys/process.h"

namespace overcap {

struct ToolAnswer {
  ProcessEnd end;
  std::string out;
  std::string err;  // the first 64 KiB
};

// kUnavailable when it does not end in time or prints more than `max_out` bytes: then its process group is
// killed. It dies too when the calling thread does. Other errors: it could not be started. `meanwhile` is
// done once, while it runs, and should be short.
Result<ToolAnswer> CallTool(SpawnRequest request, std::chrono::milliseconds timeout, size_t max_out,
                            const std::function<void()>& meanwhile = {});

}  // namespace overcap
