// SPDX-License-Identifier: Apache-2.0
#include "control/elastic/right_guard.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <limits>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "sys/pipe.h"
#include "sys/process.h"

namespace overcap {
namespace {

constexpr int kMostGroups = 4096;
constexpr int64_t kFar = std::numeric_limits<int64_t>::max();
constexpr int64_t kAgainUs = 50'000;
constexpr int64_t kEndUs = 5'000'000;

// One order is one number, small enough for a pipe to take whole: above 0 it is another group, below 0 the
// negative of the time at which to kill.
constexpr int64_t kForgetAll = 0;

struct Watched {
  pid_t groups[kMostGroups];
  int count = 0;
  int64_t kill_at_us = kFar;

  void Kill() const {
    for (int i = 0; i < count; ++i) kill(-groups[i], SIGKILL);
  }
  void Take(int64_t order) {
    if (order == kForgetAll) count = 0;
    if (order > 0 && count < kMostGroups) groups[count++] = static_cast<pid_t>(order);
    if (order < 0) kill_at_us = -order;
  }
};

// Only what may be done after a fork without exec.
[[noreturn]] void Guard(int pipe_fd, const Clock& clock) {
  static Watched watched;
  for (;;) {
    const int64_t left =
        watched.count == 0 || watched.kill_at_us == kFar ? kFar : watched.kill_at_us - clock.MonotonicUs();
    if (left <= 0) {
      watched.Kill();
      watched.kill_at_us = clock.MonotonicUs() + kAgainUs;
      continue;
    }
    pollfd wait{pipe_fd, POLLIN, 0};
    if (poll(&wait, 1, left == kFar ? -1 : static_cast<int>(left / 1000) + 1) <= 0) continue;
    int64_t order = 0;
    const ssize_t n = read(pipe_fd, &order, sizeof order);
    if (n == sizeof order) {
      watched.Take(order);
    } else if (n == 0) {  // the agent is gone
      watched.Kill();
      _exit(0);
    }
  }
}

}  // namespace

Result<std::unique_ptr<RightGuard>> RightGuard::Make(const Clock& clock) {
  OC_TRY(ends, MakePipe());
  const pid_t pid = fork();
  if (pid < 0) return Fail(ErrnoError(errno, "cannot start the guard of the ranks"));
  if (pid == 0) {
    ends.write.Reset();
    setsid();
    for (const int sig : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGPIPE}) signal(sig, SIG_IGN);
    prctl(PR_SET_NAME, "overcap-guard");
    // Readers of the agent's output must see its end while this process lives on.
    const int nothing = open("/dev/null", O_RDWR);
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(nothing, fd);
    Guard(ends.read.Get(), clock);
  }
  (void)fcntl(ends.write.Get(), F_SETFL, O_NONBLOCK);
  return std::unique_ptr<RightGuard>(new RightGuard(std::move(ends.write), pid));
}

RightGuard::~RightGuard() {
  pipe_.Reset();
  (void)EndedWithin(pid_, kEndUs);
}

void RightGuard::Tell(int64_t order) {
  (void)!write(pipe_.Get(), &order, sizeof order);
}

void RightGuard::Forget() {
  Tell(kForgetAll);
}

void RightGuard::KillAt(int64_t monotonic_us) {
  if (monotonic_us == kill_at_us_) return;
  kill_at_us_ = monotonic_us;
  Tell(-std::max<int64_t>(monotonic_us, 1));
}

}  // namespace overcap
