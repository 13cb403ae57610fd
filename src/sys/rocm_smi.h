// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sys/devices.h"

namespace overcap {

// The words to run. What it prints differs between versions in the names of the fields only.
std::vector<std::string> RocmSmiCommand();

// What that printed: an object with one member "cardN" for every GPU (each half of an MI250X is one). Text
// before and after the object (warnings about the driver) is skipped. kCorrupt, with its beginning, for
// anything else.
Result<std::vector<GpuFacts>> ParseRocmSmi(std::string_view output);

}  // namespace overcap
