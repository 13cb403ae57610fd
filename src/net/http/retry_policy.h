// SPDX-License-Identifier: Apache-2.0
// When a request is sent again. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"

namespace overcap {

struct RetryPolicy {
  int64_t first_wait_us = 100'000;       // doubles from one to the next
  int64_t longest_wait_us = 10'000'000;  // whatever the server asks for
  int64_t deadline_us = 90'000'000;      // from the first try on; none begins after it
};

// Those that say "not now": too many, broken inside, busy, a gateway without its server.
bool IsPassing(int status);          // 408 425 429 500 502 503 504
bool IsPassing(const Error& error);  // kUnavailable

// What a server asks for by Retry-After in seconds; nullopt when it says nothing that is understood.
std::optional<int64_t> RetryAfterUs(std::string_view header);

// How long to wait before the next try when `tries` have failed after `elapsed_us`, or nullopt: give up.
// `random` spreads those who were turned away together.
std::optional<int64_t> NextTryUs(const RetryPolicy& policy, int tries, int64_t elapsed_us, uint64_t random,
                                 std::optional<int64_t> asked_us);

}  // namespace overcap
