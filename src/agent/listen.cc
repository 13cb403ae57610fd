// SPDX-License-Identifier: Apache-2.0
#include "agent/listen.h"

#include <csignal>
#include <poll.h>
#include <unistd.h>

#include "sys/posix_files.h"
#include "sys/signal_inbox.h"

namespace overcap {

Result<int> RunListener() {
  OC_TRY(inbox, SignalInbox::Make({SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGPIPE}));
  for (;;) {
    pollfd fds[2] = {{inbox.PollFd(), POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
    (void)poll(fds, 2, -1);  // until the agent's end closes the other side
    for (const int sig : inbox.Take()) {
      if (sig == SIGTERM && WriteAll(STDOUT_FILENO, "TERM\n") != 0) return 0;
    }
    char byte;
    if (fds[1].revents != 0 && read(STDIN_FILENO, &byte, 1) == 0) return 0;
  }
}

}  // namespace overcap
