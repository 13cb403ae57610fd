// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "control/stop_signals.h"

namespace overcap {

// While it lives, a process that was asked to stop and has not come to its end so much later is ended, with
// 128 + the signal: who waits for a service that does not answer would wait for a minute. For work that may
// be killed at any moment.
class StopGrace {
 public:
  // `last_words` are said in a thread of its own, while others may still work.
  StopGrace(const StopSignals& signals, std::function<void(int status)> last_words,
            std::chrono::milliseconds grace = std::chrono::seconds(5));
  StopGrace(const StopGrace&) = delete;
  ~StopGrace();

 private:
  void Watch();
  bool EndsWithin(std::chrono::milliseconds time);  // it is let go of

  const StopSignals& signals_;
  const std::function<void(int)> last_words_;
  const std::chrono::milliseconds grace_;
  std::mutex mutex_;  // guards `over_`
  std::condition_variable changed_;
  bool over_ = false;
  std::thread watch_;
};

}  // namespace overcap
