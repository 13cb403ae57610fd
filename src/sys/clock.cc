// SPDX-License-Identifier: Apache-2.0
#include "sys/clock.h"

#include <ctime>

namespace overcap {
namespace {

int64_t ReadUs(clockid_t id) {
  timespec time{};
  clock_gettime(id, &time);
  return static_cast<int64_t>(time.tv_sec) * 1'000'000 + time.tv_nsec / 1000;
}

}  // namespace

int64_t PosixClock::WallUs() const {
  return ReadUs(CLOCK_REALTIME);
}
int64_t PosixClock::MonotonicUs() const {
  return ReadUs(CLOCK_MONOTONIC);
}

}  // namespace overcap
