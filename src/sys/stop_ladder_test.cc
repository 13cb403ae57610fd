// SPDX-License-Identifier: Apache-2.0
#include "sys/stop_ladder.h"

#include <gtest/gtest.h>
#include <vector>

namespace overcap {
namespace {

using Step = StopLadder::Step;

TEST(StopLadder, SendsTermOnceAndKillsAfterTheGrace) {
  StopLadder ladder(100, 1000, 5000);
  EXPECT_EQ(ladder.Next(100), Step::kTerm);
  EXPECT_EQ(ladder.Next(1099), Step::kWait);
  EXPECT_EQ(ladder.NextUs(), 1100);
  EXPECT_EQ(ladder.Next(1100), Step::kKill);
}

TEST(StopLadder, KillsAtOnceWithoutAGrace) {
  StopLadder ladder(7, 0, 5000);
  EXPECT_EQ(ladder.Next(7), Step::kKill);
}

TEST(StopLadder, KillsWithGrowingPausesAndThenGivesUp) {
  StopLadder ladder(0, 0, 100'000);
  std::vector<int64_t> kills;
  int64_t now = 0;
  while (ladder.Next(now) == Step::kKill) kills.push_back(now), now = ladder.NextUs();
  EXPECT_EQ(kills, (std::vector<int64_t>{0, 10'000, 30'000, 70'000}));
  EXPECT_EQ(now, 100'000);
  EXPECT_EQ(ladder.Next(now + 1), Step::kGiveUp);
}

}  // namespace
}  // namespace overcap
