// SPDX-License-Identifier: Apache-2.0
#include "launch/retry.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace overcap {
namespace {

std::vector<AllocatedHost> Hosts(int count, int slots) {
  std::vector<AllocatedHost> hosts;
  for (int i = 1; i <= count; ++i) hosts.push_back({StrCat("h", i), slots, 0});
  return hosts;
}

std::string Story(const Result<RankPlan>& plan) {
  if (!plan) return plan.error().message;
  std::string text;
  for (const PlannedHost& host : plan->hosts) text += StrCat(host.name, "*", host.ranks, " ");
  for (const AllocatedHost& host : plan->spares) text += StrCat("(", host.name, ") ");
  return text;
}

TEST(Retry, ASpareStandsInForAHostThatFailed) {
  const PlanRequest request{.spare_nodes = 1};
  EXPECT_EQ(Story(PlanRanks(Hosts(4, 2), request)), "h1*2 h2*2 h3*2 (h4) ");
  EXPECT_EQ(Story(PlanAgain(Hosts(4, 2), request, {"h2"})), "h1*2 h3*2 h4*2 ");
}

TEST(Retry, WhatRemainsIsUsedWhenNoSpareIsLeft) {
  EXPECT_EQ(Story(PlanAgain(Hosts(3, 2), {}, {"h1"})), "h2*2 h3*2 ");
}

TEST(Retry, SparesThatAreNotNeededStayInReserve) {
  const PlanRequest request{.spare_nodes = 2};
  EXPECT_EQ(Story(PlanAgain(Hosts(5, 1), request, {"h1"})), "h2*1 h3*1 h4*1 (h5) ");
}

TEST(Retry, HostsBeyondNnodesCountAsSpares) {
  const PlanRequest request{.nodes = 2};
  EXPECT_EQ(Story(PlanAgain(Hosts(3, 2), request, {"h1"})), "h2*2 h3*2 ");
}

TEST(Retry, AFixedNumberOfRanksMustStillFit) {
  const PlanRequest request{.ranks = 6};
  EXPECT_EQ(PlanAgain(Hosts(3, 2), request, {"h3"}).error().code, ErrorCode::kUsage);
}

TEST(Retry, WithoutAnyHostThereIsNothingToTry) {
  EXPECT_EQ(PlanAgain(Hosts(1, 1), {}, {"h1"}).error().code, ErrorCode::kUnavailable);
}

TEST(Retry, OnlyWhatMayGoBetterIsTriedAgain) {
  AttemptEnd end;
  EXPECT_FALSE(WorthRetrying(end));
  end.cause = AttemptEnd::Cause::kRankFailed;
  EXPECT_TRUE(WorthRetrying(end));
  end.first.emplace();
  end.first->reason = "command 'x' does not exist";
  EXPECT_FALSE(WorthRetrying(end));
  end.cause = AttemptEnd::Cause::kIdle;
  EXPECT_TRUE(WorthRetrying(end));
  end.cause = AttemptEnd::Cause::kCancelled;
  EXPECT_FALSE(WorthRetrying(end));
}

TEST(Retry, PausesGrowToAMinute) {
  EXPECT_EQ(BackOffUs(1), 1'000'000);
  EXPECT_EQ(BackOffUs(3), 4'000'000);
  EXPECT_EQ(BackOffUs(60), 60'000'000);
}

}  // namespace
}  // namespace overcap
