// SPDX-License-Identifier: Apache-2.0
#include "launch/foreign/watched_rank.h"

#include <csignal>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/clock.h"

namespace overcap {
namespace {

// A process with its two pipes, as a rank has them.
struct Rank {
  pid_t pid = -1;
  Fd out, err;

  explicit Rank(void (*body)()) {
    int out_ends[2], err_ends[2];
    EXPECT_EQ(0, pipe2(out_ends, O_CLOEXEC));
    EXPECT_EQ(0, pipe2(err_ends, O_CLOEXEC));
    pid = fork();
    if (pid == 0) {
      sigset_t none;  // other tests of this process may have blocked signals
      sigemptyset(&none);
      sigprocmask(SIG_SETMASK, &none, nullptr);
      dup2(out_ends[1], 1);
      dup2(err_ends[1], 2);
      body();
      _exit(0);
    }
    close(out_ends[1]);
    close(err_ends[1]);
    out.Reset(out_ends[0]);
    err.Reset(err_ends[0]);
  }
  ~Rank() {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  WatchedRank Watch() { return WatchedRank(3, pid, std::move(out), std::move(err)); }
};

WatchedRank::End EndOf(WatchedRank* rank) {
  const PosixClock clock;
  for (const int64_t until = clock.MonotonicUs() + 10'000'000; clock.MonotonicUs() < until;) {
    pollfd entry{rank->pidfd(), POLLIN, 0};
    poll(&entry, 1, 10);
    if (const auto end = rank->CheckEnd(clock.MonotonicUs())) return *end;
  }
  ADD_FAILURE() << "it does not end";
  return {};
}

TEST(WatchedRank, TellsHowItEndedOnce) {
  Rank process([] { _exit(7); });
  WatchedRank rank = process.Watch();
  EXPECT_EQ((ProcessEnd{7, 0}), EndOf(&rank));
  EXPECT_FALSE(rank.alive());
  EXPECT_FALSE(rank.CheckEnd(0));
}

TEST(WatchedRank, ReadsEachStreamToItsEnd) {
  Rank process([] {
    (void)!write(1, "out", 3);
    (void)!write(2, "error", 5);
  });
  WatchedRank rank = process.Watch();
  EndOf(&rank);
  std::string buffer(16, '\0');
  EXPECT_EQ(3u, rank.Read(1, &buffer));
  EXPECT_EQ("out", buffer.substr(0, 3));
  EXPECT_EQ(5u, rank.Read(2, &buffer));
  EXPECT_TRUE(rank.OutputOpen());
  EXPECT_EQ(0u, rank.Read(1, &buffer));
  EXPECT_EQ(0u, rank.Read(2, &buffer));
  EXPECT_FALSE(rank.OutputOpen());
}

TEST(WatchedRank, ASignalReachesTheProcessOrTheGroupThatItLeads) {
  Rank alone([] { pause(); });
  WatchedRank single = alone.Watch();
  EXPECT_FALSE(single.Group());
  single.Signal(SIGTERM);
  EXPECT_EQ((ProcessEnd{128 + SIGTERM, SIGTERM}), EndOf(&single));

  Rank leader([] {
    setpgid(0, 0);
    (void)!write(1, "x", 1);
    pause();
  });
  pollfd entry{leader.out.Get(), POLLIN, 0};
  ASSERT_EQ(1, poll(&entry, 1, 5000));
  WatchedRank group = leader.Watch();
  EXPECT_EQ(leader.pid, group.Group());
  group.Signal(SIGKILL);
  EXPECT_EQ((ProcessEnd{137, 9}), EndOf(&group));
}

}  // namespace
}  // namespace overcap
