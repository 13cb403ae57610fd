// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "sys/signal_inbox.h"

namespace overcap::node_link {

// The signals that cancel a launch: INT, TERM, and HUP unless it was ignored when we began (nohup). PIPE and
// XFSZ are dropped, USR1 is a warning that ranks are to get. One per process, kept through all attempts.
class HeadSignals {
 public:
  static Result<HeadSignals> Make();

  int PollFd() const { return inbox_.PollFd(); }
  std::vector<int> Take();  // those that have arrived since the last call
  bool TakeWarning();       // whether USR1 has arrived since the last call; asks for no new ones
  int First();              // that ever arrived, up to now; 0: none
  bool Pause(int64_t us);   // false as soon as one has arrived, now or before

 private:
  SignalInbox inbox_;
  int first_ = 0;
  bool warned_ = false;
};

}  // namespace overcap::node_link
