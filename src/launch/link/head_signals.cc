// SPDX-License-Identifier: Apache-2.0
#include "launch/link/head_signals.h"

#include <algorithm>
#include <cerrno>
#include <poll.h>
#include <signal.h>
#include <utility>

#include "sys/clock.h"

namespace overcap::node_link {

Result<HeadSignals> HeadSignals::Make() {
  std::vector<int> signals = {SIGINT, SIGTERM, SIGPIPE, SIGXFSZ, SIGUSR1};
  struct sigaction before {};
  if (sigaction(SIGHUP, nullptr, &before) == 0 && before.sa_handler != SIG_IGN) signals.push_back(SIGHUP);
  HeadSignals out;
  OC_TRY(inbox, SignalInbox::Make(signals));
  out.inbox_ = std::move(inbox);
  return out;
}

std::vector<int> HeadSignals::Take() {
  std::vector<int> taken = inbox_.Take();
  if (std::find(taken.begin(), taken.end(), SIGUSR1) != taken.end()) warned_ = true;
  std::erase_if(taken, [](int sig) { return sig == SIGPIPE || sig == SIGXFSZ || sig == SIGUSR1; });
  if (first_ == 0 && !taken.empty()) first_ = taken.front();
  return taken;
}

bool HeadSignals::TakeWarning() {
  return std::exchange(warned_, false);
}

int HeadSignals::First() {
  (void)Take();
  return first_;
}

bool HeadSignals::Pause(int64_t us) {
  const PosixClock clock;
  const int64_t until = clock.MonotonicUs() + us;
  for (int64_t left = us; left > 0 && First() == 0; left = until - clock.MonotonicUs()) {
    pollfd entry{PollFd(), POLLIN, 0};
    (void)poll(&entry, 1, static_cast<int>(std::min<int64_t>((left + 999) / 1000, 1 << 30)));
  }
  return First() == 0;
}

}  // namespace overcap::node_link
