// SPDX-License-Identifier: Apache-2.0
// "LENGTH KEY=VALUE\n" records of pax headers. Pure; the parser takes any bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace overcap {

struct PaxRecord {
  std::string_view key, value;  // into the bytes that were parsed
};

// nullopt unless it is nothing but records.
std::optional<std::vector<PaxRecord>> ParsePaxRecords(std::string_view bytes);
void AppendPaxRecord(std::string_view key, std::string_view value, std::string* out);

// "1700000000.123456789" <-> nanoseconds; digits past those are dropped, times past what 64 bits hold become
// the last that they do. nullopt: it is no time.
std::optional<int64_t> ParsePaxTime(std::string_view text);
std::string FormatPaxTime(int64_t ns);

// Seconds of a header as nanoseconds, within the same limits.
int64_t TarSecondsToNs(int64_t seconds);
// Rounded down, also before 1970.
int64_t NsToTarSeconds(int64_t ns);

}  // namespace overcap
