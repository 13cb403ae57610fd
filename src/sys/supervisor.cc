// SPDX-License-Identifier: Apache-2.0
#include "sys/supervisor.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>

#include "sys/group_run.h"

namespace overcap {

Result<std::unique_ptr<Supervisor>> Supervisor::Make(const Clock& clock, SupervisorTimes times) {
  std::unique_ptr<Supervisor> supervisor(new Supervisor(clock, times));
  // Blocked, not ignored: what a process ignores, its children would ignore too.
  OC_TRY(inbox, SignalInbox::Make({SIGCHLD, SIGTERM, SIGINT, SIGUSR1, SIGUSR2, SIGHUP, SIGPIPE, SIGXFSZ}));
  supervisor->inbox_ = std::move(inbox);
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return Fail(ErrnoError(errno, "cannot become a subreaper"));
  return supervisor;
}

GroupEnd Supervisor::Run(std::vector<GroupMember>* members, const GroupLimits& limits,
                         GroupObserver* observer) {
  return GroupRun(this, members, limits, observer).Run();
}

void Supervisor::TakeSignals() {
  for (int sig : inbox_.Take()) {
    if (sig == SIGCHLD) child_ended_ = true;
    if (sig == SIGTERM || sig == SIGINT) cancel_ = true;
    if (sig == SIGUSR1) ++warnings_;
    if (sig == SIGUSR2) drain_ = true;
  }
}

bool Supervisor::CancelRequested() {
  TakeSignals();
  return cancel_;
}

void Supervisor::Pause(int64_t us) {
  const int64_t deadline = clock_.MonotonicUs() + us;
  for (int64_t left = us; left > 0 && !CancelRequested(); left = deadline - clock_.MonotonicUs()) {
    pollfd fd{inbox_.PollFd(), POLLIN, 0};
    poll(&fd, 1, static_cast<int>(left / 1000) + 1);
  }
}

}  // namespace overcap
