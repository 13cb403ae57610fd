// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <poll.h>
#include <string>
#include <vector>

#include "sys/fd.h"
#include "sys/signal_inbox.h"

namespace overcap {

// When to look at files of a folder that others write: at once when the first of them is written after a
// pause, every millisecond while they grow, and hardly ever while they do not. Times are monotonic
// microseconds. Takes SIGIO of this process.
class LogWatch {
 public:
  // `told` false: as where the kernel does not tell of changes.
  LogWatch(const std::string& folder, int files, int64_t now_us, bool told = true);

  // Adds what to wait for; when to look at the latest.
  int64_t Prepare(std::vector<pollfd>* fds) const;
  // After a wait. Calls grown(), which looks at the files and says whether any of them has changed, when it
  // is time to. True when one has.
  bool Look(int64_t now_us, const std::function<bool()>& grown);

  static constexpr int64_t kStepUs = 1000;         // between looks while something grows
  static constexpr int64_t kLongestUs = 50'000;    // between looks where nobody tells
  static constexpr int64_t kAnywayUs = 1'000'000;  // between looks where the kernel would have told

 private:
  bool AskToBeTold();

  const int64_t shortest_us_;  // many files cost more to look at
  Fd folder_;                  // not there: nobody tells
  SignalInbox inbox_;
  bool armed_ = false;  // the next change will be told
  int64_t step_us_;
  int64_t next_us_;
};

}  // namespace overcap
