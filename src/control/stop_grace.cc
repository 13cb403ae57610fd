// SPDX-License-Identifier: Apache-2.0
#include "control/stop_grace.h"

#include <system_error>
#include <unistd.h>
#include <utility>

namespace overcap {
namespace {

// How soon a signal is noticed: its handler can wake nobody.
constexpr std::chrono::milliseconds kLook{100};

}  // namespace

StopGrace::StopGrace(const StopSignals& signals, std::function<void(int status)> last_words,
                     std::chrono::milliseconds grace)
    : signals_(signals), last_words_(std::move(last_words)), grace_(grace) {
  try {
    watch_ = std::thread([this] { Watch(); });
  } catch (const std::system_error&) {  // so many threads as one may have: then a second signal ends it
  }
}

StopGrace::~StopGrace() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  if (watch_.joinable()) watch_.join();
}

bool StopGrace::EndsWithin(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, time, [this] { return over_; });
}

void StopGrace::Watch() {
  while (signals_.signal() == 0) {
    if (EndsWithin(kLook)) return;
  }
  if (EndsWithin(grace_)) return;
  const int status = 128 + signals_.signal();
  last_words_(status);
  _exit(status);
}

}  // namespace overcap
