// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "sys/fd.h"

namespace overcap {

// Ends a request of another thread: Cancel() once, at any time, from anywhere. It stays cancelled.
class HttpCancel {
 public:
  HttpCancel();

  void Cancel();
  bool cancelled() const { return cancelled_.load(); }
  int fd() const { return event_.Get(); }  // readable once cancelled

 private:
  std::atomic<bool> cancelled_{false};
  Fd event_;
};

}  // namespace overcap
