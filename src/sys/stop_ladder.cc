// SPDX-License-Identifier: Apache-2.0
#include "sys/stop_ladder.h"

#include <algorithm>

namespace overcap {

constexpr int64_t kLongestPauseUs = 1'000'000;

StopLadder::StopLadder(int64_t now_us, int64_t grace_us, int64_t kill_us)
    : term_sent_(grace_us <= 0), next_us_(now_us), grace_us_(grace_us), kill_us_(kill_us) {}

StopLadder::Step StopLadder::Next(int64_t now_us) {
  if (now_us < next_us_) return Step::kWait;
  if (!term_sent_) {
    term_sent_ = true;
    next_us_ = now_us + grace_us_;
    return Step::kTerm;
  }
  if (give_up_us_ == 0) give_up_us_ = now_us + kill_us_;
  if (now_us >= give_up_us_) return Step::kGiveUp;
  next_us_ = std::min(now_us + pause_us_, give_up_us_);
  pause_us_ = std::min(pause_us_ * 2, kLongestPauseUs);
  return Step::kKill;
}

void StopLadder::Limit(int64_t now_us, int64_t grace_us) {
  if (give_up_us_ != 0) return;  // KILL has been sent already
  grace_us_ = std::min(grace_us_, grace_us);
  if (term_sent_) next_us_ = std::min(next_us_, now_us + grace_us_);
}

void StopLadder::Hurry(int64_t now_us) {
  if (give_up_us_ != 0) return;  // KILL has been sent already
  term_sent_ = true;
  next_us_ = std::min(next_us_, now_us);
}

}  // namespace overcap
