// SPDX-License-Identifier: Apache-2.0
#include "sys/signal_inbox.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace overcap {

Result<SignalInbox> SignalInbox::Make(const std::vector<int>& signals) {
  sigset_t set;
  sigemptyset(&set);
  for (int sig : signals) sigaddset(&set, sig);
  if (sigprocmask(SIG_BLOCK, &set, nullptr) != 0) return Fail(ErrnoError(errno, "cannot block signals"));
  SignalInbox inbox;
  inbox.fd_ = Fd(signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!inbox.fd_) return Fail(ErrnoError(errno, "cannot read signals"));
  return inbox;
}

std::vector<int> SignalInbox::Take() {
  signalfd_siginfo infos[8];
  std::vector<int> out;
  ssize_t size = 0;
  do {
    size = read(fd_.Get(), infos, sizeof infos);
    for (ssize_t i = 0; i < size / static_cast<ssize_t>(sizeof infos[0]); ++i) {
      out.push_back(static_cast<int>(infos[i].ssi_signo));
    }
  } while (size == sizeof infos);
  return out;
}

}  // namespace overcap
