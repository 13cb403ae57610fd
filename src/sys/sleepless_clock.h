// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sys/clock.h"

namespace overcap {

// One whose monotonic time goes on while the machine sleeps: for what others measure meanwhile. Waits of the
// system do not see that time: who waits by it looks often.
class SleeplessClock : public PosixClock {
 public:
  int64_t MonotonicUs() const override;
};

}  // namespace overcap
