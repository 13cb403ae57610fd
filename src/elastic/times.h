// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace overcap::elastic {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

// What follows from the TTL of a job (docs/formats/elastic.md), in microseconds.
struct ElasticTimes {
  int64_t ttl = 5'000'000;

  int64_t Beat() const { return ttl / 3; }
  int64_t Guard() const { return ttl / 5; }    // of a right: kept back for killing
  int64_t Drift() const { return ttl / 100; }  // how much later than we another clock may see a TTL pass
  int64_t Silence() const { return ttl + Drift(); }      // after so much of it a member has no right any more
  int64_t LeaderRight() const { return ttl - Drift(); }  // of a lease, from when its renewal was sent
  int64_t Reconnect() const { return ttl / 5; }          // how long a broken connection is no loss yet
};

// A far time stays far.
inline int64_t After(int64_t now_us, int64_t by_us) {
  return by_us > kNever - now_us ? kNever : now_us + by_us;
}

}  // namespace overcap::elastic
