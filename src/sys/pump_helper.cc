// SPDX-License-Identifier: Apache-2.0
#include "sys/pump_helper.h"

#include <signal.h>
#include <system_error>

namespace overcap {

PumpHelper::~PumpHelper() {
  if (!thread_.joinable()) return;
  turn_ = kStop;
  turn_.notify_one();
  thread_.join();
}

bool PumpHelper::Begin(std::vector<OutputPump*> pumps, int64_t now_us) {
  if (!thread_.joinable() && !Start()) return false;
  pumps_ = std::move(pumps);
  now_us_ = now_us;
  turn_ = kWork;
  turn_.notify_one();
  return true;
}

void PumpHelper::Finish() {
  turn_.wait(kWork);
}

// Signals are for the thread that supervises.
bool PumpHelper::Start() {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { Work(); });
  } catch (const std::system_error&) {  // a limit of processes
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread_.joinable();
}

void PumpHelper::Work() {
  while (true) {
    turn_.wait(kIdle);
    if (turn_ == kStop) return;
    for (OutputPump* pump : pumps_) pump->Pump(now_us_);
    turn_ = kIdle;
    turn_.notify_one();
  }
}

}  // namespace overcap
