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

TEST(StopLadder, AGraceTimeWithoutAnEndGetsOne) {
  StopLadder ladder(0, 1'000'000, 5000);
  EXPECT_EQ(ladder.Next(0), Step::kTerm);
  ladder.Limit(100, 50);
  EXPECT_EQ(ladder.Next(149), Step::kWait) << "no second TERM";
  EXPECT_EQ(ladder.Next(150), Step::kKill);
}

TEST(StopLadder, AnEndThatComesSoonerStays) {
  StopLadder ladder(0, 100, 5000);
  EXPECT_EQ(ladder.Next(0), Step::kTerm);
  ladder.Limit(50, 1000);
  EXPECT_EQ(ladder.NextUs(), 100);
  StopLadder untold(0, 1000, 5000);
  untold.Limit(0, 10);
  EXPECT_EQ(untold.Next(0), Step::kTerm);
  EXPECT_EQ(untold.NextUs(), 10);
}

}  // namespace
}  // namespace overcap
