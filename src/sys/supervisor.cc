// SPDX-License-Identifier: Apache-2.0
#include "sys/supervisor.h"

#include <algorithm>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <utility>

#include "sys/group_run.h"

namespace overcap {

namespace {

bool IsIgnored(int sig) {
  struct sigaction action = {};
  return sigaction(sig, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

Result<std::unique_ptr<Supervisor>> Supervisor::Make(const Clock& clock, SupervisorTimes times,
                                                     SupervisorSignals signals) {
  HeedChildren();
  signals.hangup_cancels = signals.hangup_cancels && !IsIgnored(SIGHUP);
  std::unique_ptr<Supervisor> supervisor(new Supervisor(clock, times, signals));
  // Blocked, not ignored: what a process ignores, its children would ignore too.
  std::vector<int> taken = {SIGCHLD, SIGTERM, SIGINT, SIGUSR1, SIGUSR2, SIGHUP, SIGPIPE, SIGXFSZ};
  if (signals.second_kills) taken.push_back(SIGQUIT);
  taken.insert(taken.end(), signals.cancel.begin(), signals.cancel.end());
  OC_TRY(inbox, SignalInbox::Make(taken));
  supervisor->inbox_ = std::move(inbox);
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return Fail(ErrnoError(errno, "cannot become a subreaper"));
  return supervisor;
}

GroupEnd Supervisor::Run(std::vector<GroupMember>* members, const GroupLimits& limits,
                         GroupObserver* observer, GroupCompanion* companion) {
  GroupRun run(this, members, limits, observer, companion);
  group_ = &run;
  GroupEnd end = run.Run();
  group_ = nullptr;
  return end;
}

bool Supervisor::WarnGroup() {
  return group_ != nullptr && group_->Warn();
}

void Supervisor::TakeSignals() {
  for (int sig : inbox_.Take()) {
    unseen_ = true;
    if (std::ranges::find(signals_.cancel, sig) != signals_.cancel.end()) {
      if (!std::exchange(cancel_, true)) cancel_signal_ = sig;
      continue;
    }
    if (sig == SIGCHLD) child_ended_ = true;
    if (sig == SIGTERM || sig == SIGINT || sig == SIGQUIT) Cancel(sig);
    if (sig == SIGHUP && signals_.hangup_cancels) Cancel(sig);
    if (sig == SIGUSR1) ++warnings_, ++warnings_seen_;
    if (sig == SIGUSR2) drain_ = true;
  }
}

void Supervisor::Cancel(int sig) {
  const int64_t now_us = clock_.MonotonicUs();
  const bool second = urgent_ && now_us >= cancel_us_ + kSameWordUs;
  if (signals_.second_kills && (second || sig == SIGQUIT)) hurry_ = true;
  if (!cancel_) cancel_signal_ = sig;
  if (!urgent_) cancel_us_ = now_us;
  cancel_ = urgent_ = true;
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
