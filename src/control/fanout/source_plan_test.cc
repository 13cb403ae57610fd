// SPDX-License-Identifier: Apache-2.0
#include "control/fanout/source_plan.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace overcap {
namespace {

using Assignments = std::vector<SourcePlan::Assignment>;
constexpr int kHead = SourcePlan::kHead;

SourcePlan AllAsk(int nodes) {
  SourcePlan plan(nodes);
  for (int i = 0; i < nodes; ++i) plan.Ask(i, false);
  return plan;
}

TEST(SourcePlan, TheHeadFeedsTheFirstAndTheOthersWait) {
  SourcePlan plan = AllAsk(4);
  EXPECT_EQ(plan.Assign(), (Assignments{{0, kHead}, {1, kHead}}));
  EXPECT_EQ(plan.Assign(), Assignments{});
}

TEST(SourcePlan, AHeadWithFewProcessorsFeedsOne) {
  EXPECT_EQ(SourcePlan::FirstOf(2), 1);
  EXPECT_EQ(SourcePlan::FirstOf(4), 2);
  EXPECT_EQ(SourcePlan::FirstOf(64), 2);
  SourcePlan plan(3, SourcePlan::FirstOf(1));
  for (int i = 0; i < 3; ++i) plan.Ask(i, false);
  EXPECT_EQ(plan.Assign(), (Assignments{{0, kHead}}));
  plan.Lost(0);
  EXPECT_EQ(plan.Assign(), (Assignments{{1, kHead}}));
}

TEST(SourcePlan, ACompleteNodeServesThoseThatWait) {
  SourcePlan plan = AllAsk(6);
  (void)plan.Assign();
  plan.Complete(0, true);
  EXPECT_EQ(plan.Assign(), (Assignments{{2, 0}, {3, 0}, {4, 0}}));
  plan.Complete(1, true);
  EXPECT_EQ(plan.Assign(), (Assignments{{5, 1}}));
}

// The head's own server is one more that serves from the beginning.
TEST(SourcePlan, WhoIsExcludedFromAServerIsFedAsIfThereWasNone) {
  constexpr int kServer = 5;
  SourcePlan plan(kServer + 1, 1);
  plan.Complete(kServer, true);
  plan.Exclude(3, kServer);
  plan.Exclude(4, kServer);
  for (int i = 0; i < kServer; ++i) plan.Ask(i, false);
  EXPECT_EQ(plan.Assign(), (Assignments{{0, kServer}, {1, kServer}, {2, kServer}, {3, kHead}}));
  plan.Complete(0, true);
  EXPECT_EQ(plan.Assign(), (Assignments{{4, 0}}));
}

TEST(SourcePlan, WhoIsExcludedFromTheOnlyServerThatIsLeftWaitsItsTurnAtTheHead) {
  constexpr int kServer = 5;
  SourcePlan plan(kServer + 1, 1);
  plan.Complete(kServer, true);
  for (int i = 0; i < kServer; ++i) {
    plan.Exclude(i, kServer);
    plan.Ask(i, false);
  }
  EXPECT_EQ(plan.Assign(), (Assignments{{0, kHead}}));
  plan.Complete(0, true);
  EXPECT_EQ(plan.Assign(), (Assignments{{1, 0}, {2, 0}, {3, 0}}));
  plan.Lost(0);
  for (int i = 1; i <= 3; ++i) plan.Ask(i, true);
  EXPECT_EQ(plan.Assign(), (Assignments{{4, kHead}}));
}

TEST(SourcePlan, AServerThatCannotBeReachedIsNamedToNobodyElse) {
  constexpr int kServer = 3;
  SourcePlan plan(kServer + 1, 1);
  plan.Complete(kServer, true);
  for (int i = 0; i < kServer; ++i) plan.Ask(i, false);
  EXPECT_EQ(plan.Assign(), (Assignments{{0, kServer}, {1, kServer}, {2, kServer}}));
  plan.Lost(kServer);
  for (int i = 0; i < kServer; ++i) {
    plan.Exclude(i, kServer);
    plan.Ask(i, false);
  }
  EXPECT_EQ(plan.Assign(), (Assignments{{0, kHead}}));
  plan.Complete(0, true);
  EXPECT_EQ(plan.Assign(), (Assignments{{1, 0}, {2, 0}}));
}

TEST(SourcePlan, ANodeThatIsLostWhileItFetchesMakesRoom) {
  SourcePlan plan = AllAsk(3);
  (void)plan.Assign();
  plan.Lost(0);
  EXPECT_EQ(plan.Assign(), (Assignments{{2, kHead}}));
}

TEST(SourcePlan, WhoWasFailedByTheOnlyPeerIsFedByTheHead) {
  SourcePlan plan = AllAsk(3);
  (void)plan.Assign();
  plan.Complete(0, true);
  EXPECT_EQ(plan.Assign(), (Assignments{{2, 0}}));
  plan.Ask(2, true);
  EXPECT_EQ(plan.Assign(), (Assignments{{2, kHead}}));
}

TEST(SourcePlan, ACompleteNodeThatDoesNotServeSendsNobodyAway) {
  SourcePlan plan = AllAsk(3);
  (void)plan.Assign();
  plan.Complete(0, false);
  EXPECT_EQ(plan.Assign(), (Assignments{{2, kHead}}));
}

RC_GTEST_PROP(SourcePlan, EverybodyIsServedWhateverFails, (uint64_t seed)) {
  const int nodes = *rc::gen::inRange(1, 40);
  SourcePlan plan = AllAsk(nodes);
  std::vector<bool> settled(static_cast<size_t>(nodes));
  std::vector<SourcePlan::Assignment> running;
  for (int step = 0; step < 4000; ++step) {
    for (const auto& made : plan.Assign()) running.push_back(made);
    if (running.empty()) break;
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    const size_t which = (seed >> 33) % running.size();
    const SourcePlan::Assignment next = running[which];
    running.erase(running.begin() + static_cast<std::ptrdiff_t>(which));
    RC_ASSERT(next.from != next.node);
    RC_ASSERT(!settled[static_cast<size_t>(next.node)]);
    const uint64_t fate = (seed >> 20) % 10;
    if (fate < 3 && next.from != kHead) {
      plan.Ask(next.node, true);
      continue;
    }
    settled[static_cast<size_t>(next.node)] = true;
    if (fate == 9) {
      plan.Lost(next.node);
    } else {
      plan.Complete(next.node, fate != 8);
    }
  }
  for (const bool done : settled) RC_ASSERT(done);
}

}  // namespace
}  // namespace overcap
