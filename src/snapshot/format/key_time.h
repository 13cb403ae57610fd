// SPDX-License-Identifier: Apache-2.0
// Times in keys, which sort as they pass: 20261115T144500.123456Z. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace overcap {

// Times before 1970 and after 9999 become the first and the last.
std::string KeyTimeText(int64_t time_us);
// Exactly what KeyTimeText gives, else nullopt.
std::optional<int64_t> ParseKeyTime(std::string_view text);

}  // namespace overcap
