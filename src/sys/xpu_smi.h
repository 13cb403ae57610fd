// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sys/devices.h"

namespace overcap {

std::vector<std::string> XpuSmiCommand();  // the words to run

// What that printed: {"device_list": [{"device_id": 0, "device_name": ...}]}. Each is a card, which may be
// several GPUs to a program (tiles). kCorrupt, with its beginning, for anything else.
Result<std::vector<GpuFacts>> ParseXpuSmi(std::string_view output);

}  // namespace overcap
