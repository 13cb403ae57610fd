// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "base/result.h"

namespace overcap {

// The JSON object from the first '{' to the last '}' of what `program` printed: warnings before and after it
// are common. kCorrupt "PROGRAM printed '...' instead of JSON" when that is none; never throws.
Result<nlohmann::json> JsonObjectIn(std::string_view output, std::string_view program);

}  // namespace overcap
