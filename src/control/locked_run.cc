// SPDX-License-Identifier: Apache-2.0
#include "control/locked_run.h"

#include <cerrno>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/process.h"

namespace overcap {
namespace {

constexpr int kTickMs = 200;

// The terminal, as long as the command has it; nothing where there is none, or it is another's.
class LentTerminal {
 public:
  explicit LentTerminal(pid_t group) : group_(group) {
    signal(SIGTTOU, SIG_IGN);  // who gives it away is in the background when it takes it back
    Lend();
  }
  ~LentTerminal() {
    if (lent_) (void)tcsetpgrp(STDIN_FILENO, getpgrp());
  }
  LentTerminal(const LentTerminal&) = delete;

  void Lend() {
    const bool ours = isatty(STDIN_FILENO) == 1 && tcgetpgrp(STDIN_FILENO) == getpgrp();
    lent_ = lent_ || (ours && tcsetpgrp(STDIN_FILENO, group_) == 0);
  }
  bool lent() const { return lent_; }

 private:
  const pid_t group_;
  bool lent_ = false;
};

class Running {
 public:
  Running(Spawned child, StoreLock& lock, RightGuard& guard, SignalInbox& inbox)
      : child_(std::move(child)), lock_(lock), guard_(guard), inbox_(inbox), terminal_(child_.pid) {}

  LockedRun Run(const std::function<void()>& tell) {
    while (true) {
      KeepTime(tell);
      pollfd waits[] = {{child_.pidfd.Get(), POLLIN, 0}, {inbox_.PollFd(), POLLIN, 0}};
      (void)poll(waits, 2, kTickMs);
      PassOn();
      KeepTime(tell);
      if (Ended()) return run_;
    }
  }

 private:
  // The group, while its leader is not waited for: the number is nobody else's.
  void Send(int sig) const { kill(-child_.pid, sig); }

  void KeepTime(const std::function<void()>& tell) {
    guard_.KillAt(lock_.MustEndUs());
    if (!run_.lost && !lock_.Held()) {
      run_.lost = true;
      Send(SIGTERM);
      Send(SIGCONT);
      tell();
    }
    if (run_.lost && (lock_.Taken() || LockPlace::OwnClock().MonotonicUs() >= lock_.MustEndUs()))
      Send(SIGKILL);
  }

  void PassOn() {
    for (const int sig : inbox_.Take()) {
      if (sig == SIGCONT) terminal_.Lend();  // a shell's fg
      if (sig != SIGTSTP) Send(sig);         // Ctrl-Z: who stops loses the lock
    }
  }

  bool Ended() {
    siginfo_t info{};
    if (waitid(P_PID, static_cast<id_t>(child_.pid), &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid == 0)
      return false;
    if (info.si_code == CLD_STOPPED) {
      int status = 0;
      (void)waitpid(child_.pid, &status, WNOHANG | WUNTRACED);
      // Nobody else would let it go on: shells know only this process.
      if (terminal_.lent()) Send(SIGCONT);
      return false;
    }
    if (run_.lost) Send(SIGKILL);  // what it has left behind
    guard_.Forget();
    int status = 0;
    while (waitpid(child_.pid, &status, 0) < 0 && errno == EINTR) continue;
    run_.exit_status = ProcessEndOf(status).exit_status;
    return true;
  }

  const Spawned child_;
  StoreLock& lock_;
  RightGuard& guard_;
  SignalInbox& inbox_;
  LentTerminal terminal_;
  LockedRun run_;
};

}  // namespace

std::vector<int> LockedRunSignals() {
  std::vector<int> signals = {SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT, SIGTSTP};
  struct sigaction before {};
  if (sigaction(SIGHUP, nullptr, &before) == 0 && before.sa_handler != SIG_IGN) signals.push_back(SIGHUP);
  return signals;
}

Result<LockedRun> RunLocked(const LockedCommand& command, StoreLock& lock, RightGuard& guard,
                            SignalInbox& inbox, const std::function<void()>& lost) {
  SpawnRequest request;
  request.program = command.program;
  request.argv = command.argv;
  request.env = command.env;
  request.stdin_fd = STDIN_FILENO, request.stdout_fd = STDOUT_FILENO, request.stderr_fd = STDERR_FILENO;
  request.group = ProcessGroup::kGroup;
  request.parent_death_signal = SIGKILL;
  request.want_pidfd = true;
  request.default_signals = false;  // nohup is meant for it
  request.announce_fd = guard.announce_fd();
  guard.KillAt(lock.MustEndUs());
  Result<Spawned> child = Spawn(request);
  if (!child) {
    guard.Forget();  // the number may be another's soon
    return Fail(std::move(child).error());
  }
  return Running(*std::move(child), lock, guard, inbox).Run(lost);
}

}  // namespace overcap
