// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace overcap {

// When to send what to processes that must end: TERM, the grace time, KILL again and again with growing
// pauses, then give up. Pure: it sends nothing itself. Times are monotonic microseconds.
class StopLadder {
 public:
  enum class Step { kWait, kTerm, kKill, kGiveUp };

  // grace_us 0: no TERM, KILL at once. Gives up kill_us after the first KILL.
  StopLadder(int64_t now_us, int64_t grace_us, int64_t kill_us);

  Step Next(int64_t now_us);                     // kTerm comes once, kKill several times, kGiveUp for ever
  void Hurry(int64_t now_us);                    // no more grace: KILL is next
  void Limit(int64_t now_us, int64_t grace_us);  // after TERM: KILL comes grace_us from now, if not sooner
  int64_t NextUs() const { return next_us_; }    // until then it is kWait

 private:
  bool term_sent_;
  int64_t next_us_;
  int64_t grace_us_;
  int64_t kill_us_;
  int64_t give_up_us_ = 0;  // 0: no KILL yet
  int64_t pause_us_ = 10'000;
};

}  // namespace overcap
