// SPDX-License-Identifier: Apache-2.0
// Times as services on the web write them; microseconds since 1970, UTC always.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace overcap {

std::string HttpDate(int64_t us);         // "Sun, 06 Nov 1994 08:49:37 GMT"
std::string BasicIsoTime(int64_t us);     // "19941106T084937Z"
std::string ExtendedIsoTime(int64_t us);  // "1994-11-06T08:49:37Z"

std::optional<int64_t> ParseHttpDate(std::string_view text);  // as HttpDate writes it
// "1994-11-06T08:49:37Z", with a fraction of a second or without.
std::optional<int64_t> ParseIsoTime(std::string_view text);

}  // namespace overcap
