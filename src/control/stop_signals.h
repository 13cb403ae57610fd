// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <signal.h>

namespace overcap {

// While it lives, Ctrl-C, TERM and HUP set a flag instead of ending the process; the same a second time ends
// it at once. Signals that were ignored before stay so (nohup). A file that grows over the process's limit is
// an error of whoever writes it, no end without a word. One at a time in a process.
class StopSignals {
 public:
  StopSignals();
  StopSignals(const StopSignals&) = delete;
  ~StopSignals();

  const std::atomic<bool>* flag() const;
  int signal() const;  // the one that came; 0: none
  // As if it had come, while one lives: a program that we wait for has died by it. The true one may still
  // come, and does not count as the second then.
  static void TakeAsCome(int signal);

 private:
  static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction before_[3] = {};
  struct sigaction before_too_large_ = {};
};

}  // namespace overcap
