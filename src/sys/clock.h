// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace overcap {

// What time it is. Wall time may jump in both directions; monotonic time never goes back, survives no reboot.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual int64_t WallUs() const = 0;       // microseconds since 1970
  virtual int64_t MonotonicUs() const = 0;  // microseconds since an unspecified start
};

class PosixClock : public Clock {
 public:
  int64_t WallUs() const override;
  int64_t MonotonicUs() const override;
};

// A clock that a test moves.
class FakeClock : public Clock {
 public:
  int64_t WallUs() const override { return wall_us_; }
  int64_t MonotonicUs() const override { return monotonic_us_; }
  void Advance(int64_t us) { wall_us_ += us, monotonic_us_ += us; }
  void SetWall(int64_t us) { wall_us_ = us; }

 private:
  int64_t wall_us_ = 1'700'000'000'000'000;
  int64_t monotonic_us_ = 1'000'000;
};

}  // namespace overcap
