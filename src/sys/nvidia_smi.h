// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sys/devices.h"

namespace overcap {

// What `nvidia-smi --query-gpu=index,name,uuid,memory.total --format=csv,noheader,nounits` printed. Memory
// that is not told ('[N/A]') is 0. kCorrupt, with the line, for anything that is no such table: no GPU is
// better than a wrong one.
Result<std::vector<GpuFacts>> ParseNvidiaSmi(std::string_view output);

// Runs it from PATH. kNotFound when there is none (no process is started), kUnavailable when it fails or
// hangs.
Result<std::vector<GpuFacts>> GpusFromNvidiaSmi(std::chrono::milliseconds timeout);

}  // namespace overcap
