// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace overcap::forecast {

constexpr int64_t kNever = INT64_MAX / 4;

// By when a job starts in half of the futures, and in nine of ten; kNever: nobody knows.
struct StartTimes {
  int64_t p50_s = kNever, p90_s = kNever;
  bool operator==(const StartTimes&) const = default;
};

}  // namespace overcap::forecast
