// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/result.h"
#include "sys/devices.h"

namespace overcap {

// The GPUs by NVIDIA's management library, opened at run time. kNotFound when it is not installed (that is
// cheap to find out), kUnavailable with the library's own words when it or the driver does not work.
Result<std::vector<GpuFacts>> GpusFromNvml(const char* library = "libnvidia-ml.so.1");

}  // namespace overcap
