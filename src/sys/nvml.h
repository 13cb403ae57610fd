// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/result.h"
#include "sys/devices.h"

namespace overcap {

// The GPUs by NVIDIA's management library, opened at run time. kNotFound when it is not installed (that is
// cheap to find out), kUnavailable with the library's own words when it or the driver does not work, and
// after `deadline_us` when they hang. Nothing of the library stays in this process.
Result<std::vector<GpuFacts>> GpusFromNvml(const char* library = "libnvidia-ml.so.1",
                                           int64_t deadline_us = 10'000'000);

}  // namespace overcap
