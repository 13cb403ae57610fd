// SPDX-License-Identifier: Apache-2.0
#include "control/stop_grace.h"

#include <csignal>
#include <cstdio>
#include <gtest/gtest.h>
#include <unistd.h>

namespace overcap {
namespace {

constexpr std::chrono::milliseconds kShort{20};

void WaitForever() {
  signal(SIGINT, SIG_DFL);  // whoever started the tests may ignore it
  const StopSignals signals;
  const StopGrace grace(
      signals, [](int status) { std::fprintf(stderr, "stopped with %d\n", status); }, kShort);
  raise(SIGINT);
  while (true) pause();
}

void EndInTime() {
  signal(SIGINT, SIG_DFL);
  {
    const StopSignals signals;
    const StopGrace grace(
        signals, [](int) { std::fprintf(stderr, "too late\n"); }, std::chrono::hours(1));
    raise(SIGINT);
  }
  std::fprintf(stderr, "in time\n");
  _exit(0);
}

TEST(StopGraceDeathTest, WhoDoesNotEndIsEndedWithTheStatusOfTheSignal) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(WaitForever(), testing::ExitedWithCode(130), "^stopped with 130\n$");
}

TEST(StopGraceDeathTest, WhoEndsInTimeIsLeftAlone) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(EndInTime(), testing::ExitedWithCode(0), "^in time\n$");
}

}  // namespace
}  // namespace overcap
