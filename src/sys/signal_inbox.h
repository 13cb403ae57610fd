// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "sys/fd.h"

namespace overcap {

// Signals that come so close together, in microseconds, are one word: `timeout` and others send each twice,
// to their child and to its process group.
constexpr int64_t kSameWordUs = 100'000;

// Signals as something to read, never a handler: they are blocked and wait here. One per process.
class SignalInbox {
 public:
  // Blocks `signals` in the calling thread and for good.
  static Result<SignalInbox> Make(const std::vector<int>& signals);

  int PollFd() const { return fd_.Get(); }
  std::vector<int> Take();  // what has arrived since the last call, without waiting

 private:
  Fd fd_;
};

}  // namespace overcap
