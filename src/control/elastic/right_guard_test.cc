// SPDX-License-Identifier: Apache-2.0
#include "control/elastic/right_guard.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "sys/process.h"
#include "sys/testing/in_child.h"

namespace overcap {
namespace {

constexpr int kLongMs = 60'000, kShortMs = 300;

Result<Spawned> Sleeper(const RightGuard& guard) {
  SpawnRequest request;
  request.program = "/bin/sleep";
  request.argv = {"sleep", "1000"};
  request.announce_fd = guard.announce_fd();
  return Spawn(request);
}

// The signal that ended it; TERM from here if nothing has within that time.
int EndOf(const Result<Spawned>& child, int patience_ms) {
  int status = 0;
  for (int i = 0; i < patience_ms; ++i, usleep(1000)) {
    if (waitpid(child->pid, &status, WNOHANG) == child->pid) return WTERMSIG(status);
  }
  kill(child->pid, SIGTERM);
  waitpid(child->pid, &status, 0);
  return WTERMSIG(status);
}

// Whoever starts it may be stopped at once and never say another word.
TEST(RightGuard, WhatIsStartedIsKilledInTimeWithoutAnotherWord) {
  EXPECT_EQ(InChild([] {
              const PosixClock clock;
              const auto guard = RightGuard::Make(clock);
              if (!guard) return guard.error().message;
              (*guard)->KillAt(clock.MonotonicUs() + 50'000);
              const auto first = Sleeper(**guard), second = Sleeper(**guard);
              return StrCat(EndOf(first, kLongMs), " ", EndOf(second, kLongMs));
            }),
            StrCat(SIGKILL, " ", SIGKILL));
}

TEST(RightGuard, WhatIsForgottenIsLeftAlone) {
  EXPECT_EQ(InChild([] {
              const PosixClock clock;
              const auto guard = RightGuard::Make(clock);
              if (!guard) return guard.error().message;
              const auto before = Sleeper(**guard);
              (*guard)->Forget();
              const auto after = Sleeper(**guard);
              (*guard)->KillAt(clock.MonotonicUs() + 50'000);
              const int killed = EndOf(after, kLongMs);
              return StrCat(killed, " ", EndOf(before, kShortMs));
            }),
            StrCat(SIGKILL, " ", SIGTERM));
}

TEST(RightGuard, TheTimeCanBePutOff) {
  EXPECT_EQ(InChild([] {
              const PosixClock clock;
              const auto guard = RightGuard::Make(clock);
              if (!guard) return guard.error().message;
              (*guard)->KillAt(clock.MonotonicUs() - 1);  // nobody is there
              (*guard)->KillAt(clock.MonotonicUs() + 600'000'000);
              const auto child = Sleeper(**guard);
              return StrCat(EndOf(child, kShortMs));
            }),
            StrCat(SIGTERM));
}

TEST(RightGuard, WithoutAGuardThatHearsNothingRuns) {
  EXPECT_EQ(InChild([] {
              int ends[2];
              if (pipe(ends) != 0) return std::string("no pipe");
              close(ends[0]);
              SpawnRequest request;
              request.program = "/bin/true";
              request.argv = {"true"};
              request.announce_fd = ends[1];
              const auto child = Spawn(request);
              return child ? std::string("it ran") : child.error().message.substr(0, 24);
            }),
            "cannot start '/bin/true'");
}

TEST(RightGuard, WhenWhoMadeItIsGoneAllAreKilled) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t maker = fork();
  if (maker == 0) {
    const PosixClock clock;
    const auto guard = RightGuard::Make(clock);
    SpawnRequest request;
    request.program = "/bin/sleep";
    request.argv = {"sleep", "1000"};
    request.stdout_fd = ends[1];  // open as long as it lives
    request.announce_fd = (*guard)->announce_fd();
    const auto child = Spawn(request);
    kill(getpid(), SIGKILL);
  }
  close(ends[1]);
  waitpid(maker, nullptr, 0);
  pollfd gone{ends[0], POLLIN, 0};
  EXPECT_EQ(poll(&gone, 1, kLongMs), 1);
  EXPECT_NE(gone.revents & POLLHUP, 0);
  close(ends[0]);
}

}  // namespace
}  // namespace overcap
