// SPDX-License-Identifier: Apache-2.0
#include "net/http/retry_policy.h"

#include <algorithm>

#include "base/text.h"

namespace overcap {

bool IsPassing(int status) {
  for (const int each : {408, 425, 429, 500, 502, 503, 504})
    if (status == each) return true;
  return false;
}

bool IsPassing(const Error& error) {
  return error.code == ErrorCode::kUnavailable;
}

std::optional<int64_t> RetryAfterUs(std::string_view header) {
  const auto seconds = header.size() <= 6 ? ParseInt(header) : std::nullopt;
  if (!seconds || *seconds < 0) return std::nullopt;
  return *seconds * 1'000'000;
}

// Between half and the whole of the wait: spread, and yet never at once.
std::optional<int64_t> NextTryUs(const RetryPolicy& policy, int tries, int64_t elapsed_us, uint64_t random,
                                 std::optional<int64_t> asked_us) {
  const int doublings = std::clamp(tries - 1, 0, 20);
  const int64_t whole = std::min(policy.longest_wait_us, policy.first_wait_us << doublings);
  int64_t wait = whole / 2 + static_cast<int64_t>(random % static_cast<uint64_t>(whole / 2 + 1));
  if (asked_us) wait = std::clamp(*asked_us, wait, std::max(wait, policy.longest_wait_us));
  if (elapsed_us + wait > policy.deadline_us) return std::nullopt;
  return wait;
}

}  // namespace overcap
