// SPDX-License-Identifier: Apache-2.0
#include "control/allocation_end.h"

#include <chrono>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "sys/posix_files.h"
#include "sys/testing/temp_folder.h"

namespace overcap {
namespace {

constexpr int64_t kSecond = 1'000'000;

// A squeue that says this.
Variables With(const TempFolder& temp, const std::string& script) {
  const std::string program = temp / "squeue";
  EXPECT_TRUE(PosixFiles().WriteAtomic(program, StrCat("#!/bin/sh\n", script, "\n"), false));
  EXPECT_EQ(chmod(program.c_str(), 0700), 0);
  Variables variables;
  variables.Set("PATH", StrCat(temp.Path(), ":/usr/bin:/bin"));
  variables.Set("SLURM_JOB_ID", "17");
  variables.Set("SQUEUE_FORMAT", "%A");
  return variables;
}

bool Told(const AllocationEndWatch& watch, int ms) {
  pollfd waits{watch.PollFd(), POLLIN, 0};
  return poll(&waits, 1, ms) == 1;
}

TEST(AllocationEnd, IsAskedForMoreOftenTheNearerItIs) {
  EXPECT_EQ(PauseBeforeNextLookUs(0, 5), 300 * kSecond);
  EXPECT_EQ(PauseBeforeNextLookUs(90'000 * kSecond, 0), 300 * kSecond);
  EXPECT_EQ(PauseBeforeNextLookUs(400 * kSecond, 0), 100 * kSecond);
  EXPECT_EQ(PauseBeforeNextLookUs(10 * kSecond, 0), 30 * kSecond);
  EXPECT_EQ(PauseBeforeNextLookUs(10 * kSecond, 50 * kSecond), 30 * kSecond);
}

TEST(AllocationEnd, WhatSlurmSaysReplacesWhatTheEnvironmentSaid) {
  const TempFolder temp;
  const AllocationEndWatch watch(
      With(temp, R"([ "$SLURM_TIME_FORMAT$SQUEUE_FORMAT$2" = %s--jobs=17 ] && echo 1794734712)"), 7);
  ASSERT_TRUE(Told(watch, 60'000));
  EXPECT_EQ(watch.end_us(), 1'794'734'712 * kSecond);
  watch.Taken();
  EXPECT_FALSE(Told(watch, 0));
}

TEST(AllocationEnd, WhatItDoesNotSayStaysAsItWas) {
  const TempFolder temp;
  for (const char* script :
       {"echo N/A", "echo 'Invalid job id' >&2; exit 1", "echo 1794734712; exit 1", ":"}) {
    AllocationEndWatch watch(With(temp, script), 7);
    ASSERT_TRUE(watch.Stop(std::chrono::seconds(60)));  // after the question that was begun
    EXPECT_EQ(watch.end_us(), 7) << script;
    EXPECT_FALSE(Told(watch, 0));
  }
  const AllocationEndWatch none(Variables(), 7);
  EXPECT_EQ(none.end_us(), 7);
}

TEST(AllocationEnd, ItsThreadLeavesSignalsToOthers) {
  const TempFolder temp;
  sigset_t term, before;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  AllocationEndWatch watch(With(temp, "exec sleep 1000"), 7);
  pthread_sigmask(SIG_BLOCK, &term, &before);
  kill(getpid(), SIGTERM);  // with a thread that takes it the process would end here
  const timespec patience{20, 0};
  EXPECT_EQ(sigtimedwait(&term, nullptr, &patience), SIGTERM);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST(AllocationEnd, NobodyWaitsForASlurmThatDoesNotAnswer) {
  const TempFolder temp;
  const auto began = std::chrono::steady_clock::now();
  {
    AllocationEndWatch watch(With(temp, "exec sleep 1000"), 7);
    EXPECT_FALSE(watch.Stop(std::chrono::seconds(0)));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(15));
}

}  // namespace
}  // namespace overcap
