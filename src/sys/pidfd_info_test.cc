// SPDX-License-Identifier: Apache-2.0
#include "sys/pidfd_info.h"

#include <csignal>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace overcap {
namespace {

// A child that ends at once, in the way of `end`, and is not waited for.
pid_t Ended(void (*end)()) {
  const pid_t pid = fork();
  if (pid == 0) {
    end();
    _exit(99);
  }
  siginfo_t info{};
  EXPECT_EQ(0, waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT));
  return pid;
}

TEST(PidfdInfo, TellsTheExitStatusOfAZombie) {
  const pid_t pid = Ended([] { _exit(7); });
  const auto end = EndOfZombie(pid);
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ((ProcessEnd{7, 0}), *end);
  waitpid(pid, nullptr, 0);
}

TEST(PidfdInfo, TellsTheSignalOfAZombie) {
  const pid_t pid = Ended([] { raise(SIGKILL); });
  const auto end = EndOfZombie(pid);
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ((ProcessEnd{137, 9}), *end);
  waitpid(pid, nullptr, 0);
}

TEST(PidfdInfo, ALivingProcessIsNoZombie) {
  const auto end = EndOfZombie(getpid());
  ASSERT_FALSE(end);
  EXPECT_EQ(ErrorCode::kNotFound, end.error().code);
}

TEST(PidfdInfo, TellsTheExitStatusAfterTheParentTookIt) {
  const pid_t pid = Ended([] { _exit(7); });
  const auto pidfd = OpenPidfd(pid);
  ASSERT_TRUE(pidfd);
  const auto early = EndByPidfd(*pidfd);
  ASSERT_FALSE(early);
  waitpid(pid, nullptr, 0);
  const auto end = EndByPidfd(*pidfd);
  if (!end) GTEST_SKIP() << end.error().message;
  EXPECT_EQ(ErrorCode::kUnavailable, early.error().code);
  EXPECT_EQ((ProcessEnd{7, 0}), *end);
  pollfd entry{pidfd->Get(), POLLIN, 0};
  EXPECT_EQ(1, poll(&entry, 1, 0));
  EXPECT_TRUE(entry.revents & POLLHUP);
}

TEST(PidfdInfo, OtherDescriptorsTellNothing) {
  const Fd fd(dup(0));
  const auto end = EndByPidfd(fd);
  ASSERT_FALSE(end);
  EXPECT_EQ(ErrorCode::kNotFound, end.error().code);
}

}  // namespace
}  // namespace overcap
