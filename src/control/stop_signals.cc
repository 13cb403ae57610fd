// SPDX-License-Identifier: Apache-2.0
#include "control/stop_signals.h"

namespace overcap {
namespace {

// Written by the handler: a process has one set of handlers, so these are one per process, too.
std::atomic<bool> stop_asked{false};
std::atomic<int> stop_signal{0};
std::atomic<bool> alive{false};

void OnSignal(int number) {
  stop_signal.store(number, std::memory_order_relaxed);
  stop_asked.store(true, std::memory_order_relaxed);
}

}  // namespace

StopSignals::StopSignals() {
  stop_asked = false;
  stop_signal = 0;
  alive = true;
  for (int i = 0; i < 3; ++i) {
    sigaction(kSignals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler == SIG_IGN) continue;
    struct sigaction action {};
    action.sa_handler = OnSignal;
    action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
    sigaction(kSignals[i], &action, nullptr);
  }
  struct sigaction ignored {};
  ignored.sa_handler = SIG_IGN;
  sigaction(SIGXFSZ, &ignored, &before_too_large_);
}

void StopSignals::TakeAsCome(int signal) {
  if (alive) OnSignal(signal);
}

StopSignals::~StopSignals() {
  alive = false;
  for (int i = 0; i < 3; ++i) sigaction(kSignals[i], &before_[i], nullptr);
  sigaction(SIGXFSZ, &before_too_large_, nullptr);
}

const std::atomic<bool>* StopSignals::flag() const {
  return &stop_asked;
}

int StopSignals::signal() const {
  return stop_signal;
}

}  // namespace overcap
