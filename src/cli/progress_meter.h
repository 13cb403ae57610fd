// SPDX-License-Identifier: Apache-2.0
// How far long work is: a bar with rate and time left on a terminal, events with --json.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "cli/output.h"
#include "sys/clock.h"

namespace overcap::cli {

struct ProgressFacts {
  std::string_view what;                    // "save"; with --json
  std::string_view words;                   // "saving"; for people
  int64_t files_done = 0, files_total = 0;  // totals: 0 when not known yet
  int64_t bytes_done = 0, bytes_total = 0;
};

// Bytes per second over the last seconds. Pure.
class ProgressRate {
 public:
  void Note(int64_t now_us, int64_t bytes);
  double BytesPerSecond() const;             // 0: not known yet
  int64_t SecondsLeft(int64_t bytes) const;  // until so many more are done; -1: not known

 private:
  std::deque<std::pair<int64_t, int64_t>> points_;
};

// One line of at most `width` columns: "saving  [=====>    ]  52%  1.2 GiB of 2.3 GiB  340 MiB/s  4s left".
// Pure.
std::string ProgressLine(const ProgressFacts& facts, double bytes_per_second, int64_t seconds_left,
                         int width);

class ProgressMeter {
 public:
  ProgressMeter(Output& out, const Clock& clock) : out_(out), clock_(clock) {}
  // From any thread.
  void Show(const ProgressFacts& facts);
  int64_t ElapsedUs() const { return clock_.MonotonicUs() - began_us_; }

 private:
  Output& out_;
  const Clock& clock_;
  std::mutex mutex_;  // guards all below, and the output while the work goes on
  ProgressRate rate_;
  std::string what_;
  int64_t shown_us_ = 0;
  const int64_t began_us_ = clock_.MonotonicUs();
};

}  // namespace overcap::cli
