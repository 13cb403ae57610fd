// SPDX-License-Identifier: Apache-2.0
#include "sys/sleepless_clock.h"

#include <ctime>

namespace overcap {

int64_t SleeplessClock::MonotonicUs() const {
  timespec time{};
  clock_gettime(CLOCK_BOOTTIME, &time);
  return static_cast<int64_t>(time.tv_sec) * 1'000'000 + time.tv_nsec / 1000;
}

}  // namespace overcap
