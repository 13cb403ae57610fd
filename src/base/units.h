// SPDX-License-Identifier: Apache-2.0
// Durations, byte sizes and points in time as people write them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace overcap {

// "90", "90s", "30m", "4h", "2d", "1h30m", "HH:MM:SS", "D-HH:MM:SS" -> seconds, at least 1.
Result<int64_t> ParseDurationSeconds(std::string_view text);
std::string FormatDuration(int64_t seconds);  // "45s", "1m30s", "4h", "2d3h"
std::string FormatElapsed(int64_t us);        // the same, with tenths below 10 seconds: "0.3s"

// "512M", "16G", "1.5T", "16GiB" (powers of 1024), "512B" -> bytes, at least 1. A number without a unit is
// refused: too easily it is meant as another one.
Result<int64_t> ParseBytes(std::string_view text);
std::string FormatBytes(int64_t bytes);  // "1.5 GiB"

// Microseconds since 1970 <-> "2026-11-15T04:45:16.123456Z".
std::string FormatTimeUtc(int64_t unix_us);
Result<int64_t> ParseTimeUtc(std::string_view text);  // exactly that form; the fraction may be missing
std::string FormatTimeLocal(int64_t unix_us);         // "2026-11-15 04:45:16", for tables
// As short as it can be told from `now_us`, to the minute and rounded up: "14:20" today, "Tue 14:20" in the
// next six days, else "2026-11-15 14:20".
std::string FormatWhen(int64_t unix_us, int64_t now_us);

}  // namespace overcap
