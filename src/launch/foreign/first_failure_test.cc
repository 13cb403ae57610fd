// SPDX-License-Identifier: Apache-2.0
#include "launch/foreign/first_failure.h"

#include <csignal>
#include <gtest/gtest.h>

namespace overcap {
namespace {

RankFailure Exit(int rank, int status) {
  return {rank, "n1", {status, 0}, true, false, ""};
}
RankFailure Signal(int rank, int sig) {
  return {rank, "n1", {128 + sig, sig}, true, false, ""};
}
RankFailure Unknown(int rank) {
  return {rank, "n1", {-1, 0}, false, false, ""};
}
LauncherFinding Says(int rank, ProcessEnd end, bool aborted = false) {
  LauncherFinding finding;
  finding.rank = rank;
  finding.end = end;
  finding.aborted = aborted;
  return finding;
}

FirstFailure After(const std::vector<RankFailure>& ends) {
  FirstFailure failures;
  int64_t now_us = 0;
  for (const RankFailure& end : ends) {
    failures.OnBegun(end.rank, 100 + end.rank, end.host);
    failures.OnEnded(end, now_us += 50'000);
  }
  return failures;
}

TEST(FirstFailure, GoodEndsAreNoFailure) {
  const FirstFailure failures = After({Exit(0, 0), Exit(1, 0)});
  EXPECT_FALSE(failures.Certain({}));
  EXPECT_FALSE(failures.Choose({}, ProcessEnd{0, 0}));
}

// One that came when all was stopped ends as if it was stopped, too (control/become_rank).
TEST(FirstFailure, IsNotALateRankThatWasStoppedBeforeItBegan) {
  const auto first =
      After({Signal(1, SIGKILL)}).Choose({Says(3, {128 + SIGTERM, SIGTERM})}, ProcessEnd{128 + SIGTERM, 0});
  EXPECT_EQ(1, first->rank);
}

TEST(FirstFailure, IsTheFirstThatEndedBadly) {
  const auto first = After({Exit(0, 0), Exit(2, 7), Exit(1, 3)}).Choose({}, ProcessEnd{3, 0});
  EXPECT_EQ(2, first->rank);
  EXPECT_EQ((ProcessEnd{7, 0}), first->end);
}

TEST(FirstFailure, ARankKilledByTheLauncherGivesWayToTheOneItNames) {
  const FirstFailure failures = After({Signal(0, 9), Exit(1, 7)});
  EXPECT_EQ(1, failures.Choose({Says(1, {7, 0})}, std::nullopt)->rank);
  EXPECT_EQ(1, failures.Choose({}, ProcessEnd{7, 0})->rank);
}

TEST(FirstFailure, WhenAllOthersWereKilledItIsTheOneThatEndedByItself) {
  EXPECT_EQ(2, After({Signal(0, 9), Signal(1, 9), Exit(2, 5)}).Choose({}, ProcessEnd{13, 0})->rank);
}

TEST(FirstFailure, ARankThatEndsInTheMomentAfterAKillIsBehindIt) {
  FirstFailure failures;
  failures.OnEnded(Signal(0, 9), 1'000'000);
  failures.OnEnded(Exit(1, 5), 1'010'000);
  EXPECT_EQ(1, failures.Choose({}, std::nullopt)->rank);
}

TEST(FirstFailure, ARankThatSomebodyKilledIsTheFirstThoughOthersFailAfterIt) {
  const FirstFailure failures = After({Signal(0, 9), Exit(1, 1)});
  EXPECT_EQ(0, failures.Choose({}, ProcessEnd{137, 0})->rank);
  EXPECT_EQ(0, failures.Choose({Says(0, {137, 9})}, ProcessEnd{137, 0})->rank);
}

TEST(FirstFailure, ACrashIsNobodyElsesDoing) {
  EXPECT_EQ(0, After({Signal(0, 11), Exit(1, 7)}).Choose({Says(1, {7, 0})}, ProcessEnd{7, 0})->rank);
}

TEST(FirstFailure, AnOutOfMemoryKillIsNobodyElsesDoing) {
  RankFailure killed = Signal(0, 9);
  killed.out_of_memory = true;
  EXPECT_EQ(0, After({killed, Exit(1, 7)}).Choose({Says(1, {7, 0})}, ProcessEnd{7, 0})->rank);
}

TEST(FirstFailure, WhoCalledAbortIsTheFirst) {
  const auto first = After({Exit(2, 5), Signal(1, 9)}).Choose({Says(1, {7, 0}, true)}, ProcessEnd{7, 0});
  EXPECT_EQ(1, first->rank);
  EXPECT_EQ((ProcessEnd{7, 0}), first->end);
}

TEST(FirstFailure, TheLauncherTellsWhatTheHostCouldNotLearn) {
  const FirstFailure failures = After({Unknown(0), Unknown(1)});
  EXPECT_FALSE(failures.Certain({}));
  EXPECT_TRUE(failures.Certain({Says(1, {7, 0})}));
  const auto named = failures.Choose({Says(1, {7, 0})}, ProcessEnd{7, 0});
  EXPECT_EQ(1, named->rank);
  EXPECT_EQ((ProcessEnd{7, 0}), named->end);
  EXPECT_TRUE(named->end_known);
  const auto guessed = failures.Choose({}, ProcessEnd{7, 0});
  EXPECT_EQ(0, guessed->rank);
  EXPECT_FALSE(guessed->end_known);
  EXPECT_FALSE(failures.Choose({}, ProcessEnd{0, 0}));
}

TEST(FirstFailure, AProcessIdNamesItsRank) {
  FirstFailure failures = After({Unknown(3)});
  LauncherFinding finding = Says(-1, {137, 9});
  finding.pid = 103;
  EXPECT_EQ(3, failures.Choose({finding}, std::nullopt)->rank);
}

}  // namespace
}  // namespace overcap
