// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "sys/signal_inbox.h"

namespace overcap::node_link {

// The signals that cancel a launch: INT, TERM, and HUP unless it was ignored when we began (nohup). PIPE and
// XFSZ are dropped. One per process, kept through all attempts.
class HeadSignals {
 public:
  static Result<HeadSignals> Make();

  int PollFd() const { return inbox_.PollFd(); }
  std::vector<int> Take();  // those that have arrived since the last call
  int First();              // that ever arrived, up to now; 0: none
  bool Pause(int64_t us);   // false as soon as one has arrived, now or before

 private:
  SignalInbox inbox_;
  int first_ = 0;
};

}  // namespace overcap::node_link
