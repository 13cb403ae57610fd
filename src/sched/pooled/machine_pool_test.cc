// SPDX-License-Identifier: Apache-2.0
#include "sched/pooled/machine_pool.h"

#include <gtest/gtest.h>

#include "model/policy/policy_text.h"

namespace overcap::pooled {
namespace {

constexpr char kText[] = R"(
nodes:
  box: {gpus: "a40:2,titan_x:2", cpus: 32}
labs:
  vision: {gpus: 2, members: [ann, bob], per_user: {gpus: 1}}
  nlp: 2 carol ann
users: {ann: {default_lab: nlp}}
partitions:
  debug: {gpus_per_job: 1, users: [ann]}
  big: {nodes_per_job: 1, mem_per_gpu: 4G, cpus_per_gpu: 2, labs: [nlp]}
)";

Policy Read(std::string_view text) {
  auto policy = ParsePolicy(text, "policy.yaml");
  EXPECT_TRUE(policy) << policy.error().message;
  return policy ? *policy : Policy{};
}

Machine Box() {
  Machine machine{"box.example.org", 16, int64_t{64} << 30, {}, true};
  for (int i = 0; i < 4; ++i) machine.gpus.push_back({i, i % 2 == 0 ? "titan_x" : "A40", "", 0});
  return machine;
}

JobSpec Asking(const std::string& user, int gpus, std::vector<std::string> partitions = {},
               const std::string& lab = "") {
  JobSpec spec;
  spec.user = user;
  spec.resources.gpus = gpus;
  spec.placement.partitions = std::move(partitions);
  spec.placement.account = lab;
  spec.submitted_us = 7'000'000;
  return spec;
}

class MachinePoolTest : public testing::Test {
 protected:
  MachinePool pool = *MachinePool::Make(Read(kText), Box(), true);

  std::string Refusal(const JobSpec& spec) {
    auto taken = pool.Take(spec, 1);
    return taken ? "taken" : taken.error().message;
  }
};

TEST_F(MachinePoolTest, EachTypeIsANodeWithItsPartOfTheMachine) {
  ASSERT_EQ(pool.rules().nodes.size(), 2U);
  EXPECT_EQ(pool.rules().types, (std::vector<std::string>{"a40", "titan_x"}));
  for (const NodeRule& node : pool.rules().nodes) EXPECT_EQ(std::pair(node.gpus, node.cpus), std::pair(2, 8));
  EXPECT_EQ(pool.SharesOf({3, 1}), (std::vector<GpuShare>{{0, 3}}));
  EXPECT_EQ(pool.SharesOf({2}), (std::vector<GpuShare>{{1, 2}}));
  EXPECT_EQ(pool.GpusOf({{0, 2}, {1, 1}}), (std::vector<int>{0, 3}));
}

TEST_F(MachinePoolTest, AJobCountsForTheLabItNamesOrForItsUsersDefault) {
  EXPECT_EQ(*LabOf(pool.policy(), Asking("ann", 1)), "nlp");
  EXPECT_EQ(*LabOf(pool.policy(), Asking("ann", 1, {}, "vision")), "vision");
  EXPECT_EQ(Refusal(Asking("bob", 1, {}, "nlp")), "user 'bob' is not in lab 'nlp'");
  EXPECT_EQ(Refusal(Asking("bob", 1, {}, "art")), "user 'bob' is not in lab 'art'");
  EXPECT_EQ(Refusal(Asking("eve", 1)), "user 'eve' is in no lab");
}

TEST_F(MachinePoolTest, PartitionsThatTheUserMayNotUseAreLeftOut) {
  EXPECT_EQ(Refusal(Asking("bob", 1, {"fast"})), "the policy has no partition 'fast'");
  EXPECT_EQ(Refusal(Asking("bob", 1, {"debug"})), "user 'bob' of lab 'vision' may not use partition 'debug'");
  EXPECT_EQ(pool.Take(Asking("bob", 1, {"debug", "short"}), 1)->partitions, Bit(pool.PartitionAt("short")));
  EXPECT_EQ(pool.Take(Asking("bob", 1), 1)->partitions, Bit(pool.PartitionAt("short")));
}

TEST_F(MachinePoolTest, WhatAJobDoesNotAskForIsThatOfThePartitionOrOfTheNode) {
  const Need big = pool.Take(Asking("carol", 2, {"big"}), 1)->need;
  EXPECT_EQ(std::pair(big.cpus, big.mem_mb), (std::pair(4, int64_t{8192})));
  EXPECT_EQ(pool.Take(Asking("carol", 2, {"short"}), 1)->need.cpus, 8);
  EXPECT_EQ(pool.Take(Asking("carol", 0, {"short"}), 1)->need.cpus, 1);
}

TEST_F(MachinePoolTest, LimitsOfAPartitionHoldForTheSizeOfAJob) {
  LivePool live{pool.rules(), {}, {}, {}, {}};
  const PoolJob one = *pool.Take(Asking("ann", 1, {"debug"}), 1),
                two = *pool.Take(Asking("ann", 2, {"debug"}), 2);
  live.accounts = pool.accounts();
  live.waiting = {one, two};
  const OpenedPool opened = Open(live);
  EXPECT_EQ(opened.waiting[0].refusal, pooled::Refusal::kNone);
  EXPECT_EQ(opened.waiting[1].refusal, pooled::Refusal::kOverLimit);
}

TEST_F(MachinePoolTest, AMachineThatIsNotInThePolicyIsRefused) {
  Machine other = Box();
  other.gpus.pop_back();
  EXPECT_EQ(MachinePool::Make(Read(kText), other, true).error().message,
            "the policy gives node 'box' a40:2,titan_x:2, this machine has a40:1,titan_x:2");
  const Policy two = Read("nodes: {a1: a40:1, a2: a40:1}\nlabs: {vision: 1 ann}\n");
  EXPECT_EQ(MachinePool::Make(two, Box(), true).error().message,
            "the policy has no node 'box.example.org', which this machine is");
}

TEST_F(MachinePoolTest, APoolThatIsOpenedStandsWhereItWas) {
  LivePool live{pool.rules(), {}, {}, {}, {}};
  LiveRun lent;
  lent.job = pool.TakeRunning(Asking("carol", 2, {"overcap"}), 1);
  lent.partition = pool.PartitionAt("overcap");
  lent.shares = pool.SharesOf({1, 3});
  lent.leaving = true;
  JobSpec spec = Asking("ann", 2, {"short"});
  spec.resources.gpu_type = "a40";
  live.running = {lent};
  live.waiting = {*pool.Take(spec, 2)};
  live.accounts = pool.accounts();
  OpenedPool opened = Open(live);
  EXPECT_TRUE(opened.scheduler.Pass(10'000).empty()) << "who leaves already is told once only";
  opened.scheduler.Requeue(opened.running[0], 10'001);
  const std::vector<Action> actions = opened.scheduler.Pass(10'001);
  ASSERT_EQ(actions.size(), 2U);
  EXPECT_EQ(actions[0].key, 2U);
  EXPECT_EQ(actions[0].shares, lent.shares);
  EXPECT_EQ(actions[1].key, 1U) << "the victim goes on with what is idle";
}

}  // namespace
}  // namespace overcap::pooled
