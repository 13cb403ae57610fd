// SPDX-License-Identifier: Apache-2.0
#include "launch/rank_plan.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/text.h"

namespace overcap {
namespace {

using Counts = std::vector<int>;

std::vector<AllocatedHost> Gpus(const Counts& gpus) {
  std::vector<AllocatedHost> hosts;
  for (const int count : gpus) hosts.push_back({StrCat("n", hosts.size() + 1), 0, count});
  return hosts;
}

std::vector<AllocatedHost> Slots(const Counts& slots) {
  std::vector<AllocatedHost> hosts;
  for (const int count : slots) hosts.push_back({StrCat("n", hosts.size() + 1), count, 0});
  return hosts;
}

Counts Ranks(const std::vector<AllocatedHost>& hosts, const PlanRequest& request) {
  const auto plan = PlanRanks(hosts, request);
  Counts counts;
  if (!plan) return counts;
  for (const PlannedHost& host : plan->hosts) counts.push_back(host.ranks);
  return counts;
}

std::string Problem(const std::vector<AllocatedHost>& hosts, const PlanRequest& request) {
  const auto plan = PlanRanks(hosts, request);
  if (plan) return "";
  EXPECT_EQ(plan.error().code, ErrorCode::kUsage);
  return plan.error().message + (plan.error().hint.empty() ? "" : " | " + plan.error().hint);
}

TEST(RankPlanTest, OneRankPerGpuOfEachHost) {
  const auto plan = PlanRanks(Gpus({4, 2}), {}).value();
  EXPECT_EQ(plan.world_size, 6);
  EXPECT_EQ(plan.hosts, (std::vector<PlannedHost>{{"n1", 0, 4, 4}, {"n2", 4, 2, 2}}));
  EXPECT_FALSE(plan.Even());
  EXPECT_EQ(plan.MostPerHost(), 4);
  EXPECT_EQ(plan.HostOf(3), 0);
  EXPECT_EQ(plan.HostOf(4), 1);
}

TEST(RankPlanTest, HostsWithoutGpusTakeOneRankByDefault) {
  EXPECT_EQ(Ranks(Gpus({0, 0, 0}), {}), (Counts{1, 1, 1}));
  EXPECT_EQ(Ranks(Gpus({0, 2}), {}), (Counts{1, 2}));
}

TEST(RankPlanTest, SlotsCountInThePlaceOfGpus) {
  EXPECT_EQ(Ranks({{"a", 3, 8}, {"b", 0, 2}}, {}), (Counts{3, 2}));
}

TEST(RankPlanTest, UnknownGpusAreThoseOfTheHostThatIsKnown) {
  EXPECT_EQ(Ranks(Gpus({-1, 4, -1}), {}), (Counts{4, 4, 4}));
  EXPECT_EQ(Ranks(Gpus({-1, -1}), {}), (Counts{1, 1}));
}

TEST(RankPlanTest, APlainMachineTakesAnyNumberOfRanks) {
  EXPECT_EQ(Ranks(Gpus({0}), {.ranks = 64}), (Counts{64}));
  EXPECT_EQ(Ranks(Gpus({0}), {.per_node = 64}), (Counts{64}));
}

TEST(RankPlanTest, RanksAreSpreadEvenlyAndEarlierHostsGetTheExtraOne) {
  EXPECT_EQ(Ranks(Gpus({4, 4, 4, 4}), {.ranks = 10}), (Counts{3, 3, 2, 2}));
  EXPECT_EQ(Ranks(Gpus({8, 1, 8}), {.ranks = 9}), (Counts{4, 1, 4}));
  EXPECT_EQ(Ranks(Slots({2, 5}), {.ranks = 7}), (Counts{2, 5}));
}

TEST(RankPlanTest, FewerRanksThanHostsLeaveSpares) {
  const auto plan = PlanRanks(Gpus({4, 4, 4}), {.ranks = 2}).value();
  EXPECT_EQ(plan.hosts.size(), 2u);
  ASSERT_EQ(plan.spares.size(), 1u);
  EXPECT_EQ(plan.spares[0].name, "n3");
}

TEST(RankPlanTest, RanksPerNodeFillOneHostAfterTheOther) {
  EXPECT_EQ(Ranks(Gpus({4, 4, 4}), {.ranks = 10, .per_node = 4}), (Counts{4, 4, 2}));
  EXPECT_EQ(Ranks(Gpus({1, 1, 1}), {.ranks = 4, .per_node = 4}), (Counts{4}));
  EXPECT_EQ(Ranks(Gpus({1, 1}), {.per_node = 3}), (Counts{3, 3}));
  EXPECT_EQ(Problem(Gpus({4, 4}), {.ranks = 9, .per_node = 4}),
            "9 ranks do not fit: --ppn 4 on 2 hosts is 8");
}

TEST(RankPlanTest, MoreRanksThanGpusOrSlotsAreRefused) {
  EXPECT_EQ(Problem(Gpus({4}), {.ranks = 8}),
            "8 ranks do not fit: 1 host has 4 GPUs | --ppn 8 lets ranks share GPUs");
  EXPECT_EQ(Problem(Gpus({4, 1}), {.ranks = 8}),
            "8 ranks do not fit: 2 hosts have 5 GPUs | --ppn 4 lets ranks share GPUs");
  EXPECT_EQ(Problem(Slots({2, 1}), {.ranks = 4}),
            "4 ranks do not fit: 2 hosts have 3 slots | --ppn 2 lets ranks share slots");
  EXPECT_EQ(Problem({{"a", 2, 0}, {"b", 0, 3}}, {.ranks = 6}),
            "6 ranks do not fit: 2 hosts take 5 | --ppn 3 lets ranks share slots");
}

TEST(RankPlanTest, NodesAreTheFirstOnesBesideTheSpares) {
  const auto plan = PlanRanks(Gpus({2, 2, 2, 2}), {.nodes = 2, .spare_nodes = 1}).value();
  EXPECT_EQ(plan.hosts.size(), 2u);
  ASSERT_EQ(plan.spares.size(), 2u);
  EXPECT_EQ(plan.spares[0].name, "n3");
  EXPECT_EQ(Problem(Gpus({2, 2}), {.nodes = 3}), "--nnodes 3: there are 2 hosts");
  EXPECT_EQ(Problem(Gpus({2, 2}), {.nodes = 2, .spare_nodes = 1}),
            "--nnodes 2: there is 1 host beside 1 spare");
  EXPECT_EQ(Problem(Gpus({2, 2}), {.spare_nodes = 2}),
            "--spare-nodes 2 leaves no host for the ranks: there are 2 hosts");
  EXPECT_EQ(Problem(Gpus({2, 2, 2}), {.ranks = 1, .nodes = 3}),
            "--nnodes 3: 1 rank would leave 2 hosts empty");
}

TEST(RankPlanTest, NonsenseIsRefused) {
  EXPECT_EQ(Problem({}, {}), "there is no host to run ranks on");
  EXPECT_EQ(Problem(Gpus({1}), {.ranks = -1}), "-n must be at least 1, not -1");
  EXPECT_EQ(Problem(Gpus({1}), {.per_node = -2}), "--ppn must be at least 1, not -2");
  EXPECT_EQ(Problem(Gpus({1}), {.ranks = 2'000'000'000}), "-n must be at most 1000000, not 2000000000");
  EXPECT_EQ(Problem(Gpus({1, 1}), {.per_node = 1'000'000}), "a launch has at most 1000000 ranks");
}

RC_GTEST_PROP(RankPlanProperty, RanksAreConsecutiveWithinCapacityAndBalanced, ()) {
  std::vector<AllocatedHost> hosts;
  const int count = *rc::gen::inRange(1, 20);
  for (int i = 0; i < count; ++i)
    hosts.push_back({StrCat("h", i), *rc::gen::inRange(0, 5), *rc::gen::inRange(0, 5)});
  const PlanRequest request{*rc::gen::inRange(0, 60), *rc::gen::element(0, 0, 1, 3, 8),
                            *rc::gen::inRange(0, count + 1), *rc::gen::element(0, 0, 1)};
  const auto plan = PlanRanks(hosts, request);
  if (!plan) {
    RC_ASSERT(plan.error().code == ErrorCode::kUsage);
    return;
  }
  int next = 0;
  for (const PlannedHost& host : plan->hosts) {
    RC_ASSERT(host.first_rank == next);
    RC_ASSERT(host.ranks >= 1);
    for (int rank = next; rank < next + host.ranks; ++rank)
      RC_ASSERT(plan->hosts[static_cast<size_t>(plan->HostOf(rank))].name == host.name);
    next += host.ranks;
  }
  RC_ASSERT(next == plan->world_size);
  RC_ASSERT(request.ranks == 0 || plan->world_size == request.ranks);
  RC_ASSERT(request.nodes == 0 || static_cast<int>(plan->hosts.size()) == request.nodes);
  RC_ASSERT(static_cast<int>(plan->spares.size()) >= request.spare_nodes);
  RC_ASSERT(plan->hosts.size() + plan->spares.size() == hosts.size());
  for (size_t i = 0; i < plan->hosts.size(); ++i) {
    const int ranks = plan->hosts[i].ranks;
    if (request.per_node > 0) {
      RC_ASSERT(ranks <= request.per_node);
      continue;
    }
    const int capacity = hosts[i].slots > 0 ? hosts[i].slots : hosts[i].gpus;
    RC_ASSERT(capacity == 0 || ranks <= capacity);
    // Balanced: whoever has room is at most one behind anybody before it, and not behind anybody after it.
    const bool room = capacity == 0 || ranks < capacity;
    for (size_t j = 0; request.ranks > 0 && room && j < plan->hosts.size(); ++j)
      RC_ASSERT(plan->hosts[j].ranks <= ranks + (j < i ? 1 : 0));
  }
  const auto told = ParseRanksPerHost(RanksPerHostText(*plan));
  RC_ASSERT(told.has_value());
  RC_ASSERT(told->size() == plan->hosts.size());
  for (size_t i = 0; i < told->size(); ++i) RC_ASSERT((*told)[i] == plan->hosts[i].ranks);
}

TEST(RankPlanTest, RanksPerHostAreToldInShort) {
  EXPECT_EQ(RanksPerHostText(PlanRanks(Gpus({4, 4, 4, 2}), {}).value()), "4x3,2");
  EXPECT_EQ(ParseRanksPerHost("4x3,2").value(), (Counts{4, 4, 4, 2}));
  for (const char* bad :
       {"", ",", "0", "4x", "x3", "4x0", "-1", "4x3,", "9999999", "1000x1001", "4x3x2", "1 "})
    EXPECT_FALSE(ParseRanksPerHost(bad)) << bad;
}

}  // namespace
}  // namespace overcap
