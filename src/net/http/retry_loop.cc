// SPDX-License-Identifier: Apache-2.0
#include "net/http/retry_loop.h"

#include <chrono>
#include <thread>

namespace overcap {
namespace {

void Sleep(int64_t us) {
  std::this_thread::sleep_for(std::chrono::microseconds(us));
}

}  // namespace

RetryLoop::RetryLoop(const RetryPolicy& policy, const Clock& clock, Random& random,
                     std::function<void(int64_t us)> wait)
    : policy_(policy),
      clock_(clock),
      random_(random),
      wait_(wait ? std::move(wait) : Sleep),
      begin_us_(clock.MonotonicUs()) {}

bool RetryLoop::Again(std::optional<int64_t> asked_us) {
  const auto wait = NextTryUs(policy_, ++tries_, clock_.MonotonicUs() - begin_us_, random_.Next(), asked_us);
  if (!wait) return false;
  wait_(*wait);
  return true;
}

}  // namespace overcap
