// SPDX-License-Identifier: Apache-2.0
#include "sched/pooled/pooled_scheduler.h"

#include <gtest/gtest.h>
#include <map>

#include "sched/pooled/testing/invariants.h"

namespace overcap::pooled {
namespace {

constexpr int kDebug = 0, kShort = 1, kLong = 2, kYields = 3, kOvercap = 4;

// Two labs with 8 GPUs each on two nodes of 8, the five partitions of a policy.
Rules TwoLabs() {
  Rules rules;
  rules.types = {"titan_x", "a40"};
  rules.nodes = {{"t1", 0, 8, 64, 256000, 8}, {"a1", 1, 8, 64, 256000, 8}};
  rules.labs = {{"vision", 8}, {"nlp", 8}};
  PartitionRule debug{"debug", 40, 4 * 3600}, batch{"short", 30, 2 * 86400}, slow{"long", 20, 7 * 86400};
  debug.per_user.gpus = 5;
  debug.preempts = batch.preempts = slow.preempts = Bit(kOvercap);
  debug.preempts_in_lab = batch.preempts_in_lab = slow.preempts_in_lab = Bit(kYields);
  PartitionRule yields{"user-overcap", 10, 2 * 86400}, overcap{"overcap", 0, 2 * 86400};
  yields.yields = true, yields.preempts = Bit(kOvercap);
  overcap.counts = false;
  yields.grace_s = overcap.grace_s = 120, yields.quantum_s = overcap.quantum_s = 300;
  rules.partitions = {debug, batch, slow, yields, overcap};
  return rules;
}

class Pooled : public testing::Test {
 protected:
  explicit Pooled(Rules rules = TwoLabs()) : scheduler(std::move(rules)) {
    scheduler.AddAccount({0, 0, {}});  // 0: ann of vision
    scheduler.AddAccount({0, 1, {}});  // 1: bob of vision
    scheduler.AddAccount({1, 2, {}});  // 2: carol of nlp
  }

  JobRef Add(int account, uint64_t partitions, int gpus, int nodes = 1, uint64_t types = 3,
             int64_t limit_s = 3600) {
    PoolJob job;
    job.key = job.seq = ++keys;
    job.account = account;
    job.partitions = partitions;
    job.need = {nodes, gpus, 1, 0, types};
    job.limit_s = limit_s;
    job.submit_s = now;
    JobRef ref = ~JobRef{0};
    EXPECT_EQ(scheduler.Submit(job, &ref), Refusal::kNone);
    return ref;
  }

  // The keys that start and those that are stopped, as "+1 +2 -3".
  std::string Pass() {
    const std::vector<Action> actions = scheduler.Pass(now);
    std::string text;
    for (const Action& action : actions)
      text += (text.empty() ? "" : " ") + std::string(action.kind == Action::Kind::kStart ? "+" : "-") +
              std::to_string(action.key);
    EXPECT_EQ(invariants.Look(scheduler, actions, now), "");
    return text;
  }

  PooledScheduler scheduler;
  Invariants invariants;
  int64_t now = 0;
  uint64_t keys = 0;
};

TEST_F(Pooled, ALabGetsItsCapAndNotMore) {
  Add(0, Bit(kShort), 4);
  Add(0, Bit(kShort), 4);
  Add(1, Bit(kShort), 1);
  EXPECT_EQ(Pass(), "+1 +2");
  EXPECT_EQ(scheduler.LabGpus(0).running, 8);
}

TEST_F(Pooled, WhatIsIdleIsLentAndComesBackAfterTheGrace) {
  const JobRef lent = Add(0, Bit(kOvercap), 8);
  Add(0, Bit(kOvercap), 8);
  EXPECT_EQ(Pass(), "+1 +2");
  now = 1000;
  Add(2, Bit(kShort), 8);
  EXPECT_EQ(Pass(), "-1");
  now += 120;
  scheduler.Requeue(lent, now);
  EXPECT_EQ(Pass(), "+3");
  EXPECT_EQ(scheduler.job(lent).state, PooledScheduler::State::kQueued);
}

TEST_F(Pooled, NobodyIsStoppedWithinTheQuantumAndThePassThatMayComesWithItsEnd) {
  Add(0, Bit(kOvercap), 8);
  Add(0, Bit(kOvercap), 8);
  EXPECT_EQ(Pass(), "+1 +2");
  now = 10;
  Add(2, Bit(kShort), 8);
  EXPECT_EQ(Pass(), "");
  EXPECT_EQ(scheduler.NextWakeS(), 300);
  now = 300;
  EXPECT_EQ(Pass().size(), 2u);
}

TEST_F(Pooled, VictimsAreTheFewestThatLoseTheLeastAndHelp) {
  for (int i = 0; i < 4; ++i) Add(0, Bit(kOvercap), 2, 1, 1);  // 1 to 4 fill the titan_x
  Add(0, Bit(kOvercap), 4, 1, 2);                              // 5, 6 fill the a40
  Add(0, Bit(kOvercap), 4, 1, 2);
  EXPECT_EQ(Pass(), "+5 +6 +1 +2 +3 +4");  // larger ones first
  now = 1000;
  scheduler.Checkpointed(5, 990);  // key 6 has just saved its work
  Add(2, Bit(kShort), 4);
  EXPECT_EQ(Pass(), "-6");
  Add(2, Bit(kShort), 2, 1, 1);
  EXPECT_EQ(Pass().size(), 2u);
}

TEST_F(Pooled, LabmatesComeBeforeUserOvercap) {
  const JobRef mine = Add(0, Bit(kYields), 4);
  Add(0, Bit(kYields), 4);
  EXPECT_EQ(Pass(), "+1 +2");
  now = 1000;
  Add(2, Bit(kYields), 8);
  EXPECT_EQ(Pass(), "+3");
  Add(1, Bit(kShort), 3);
  const std::string stopped = Pass();
  EXPECT_TRUE(stopped == "-1" || stopped == "-2") << stopped;
  now += 120;
  scheduler.Requeue(stopped == "-1" ? mine : mine + 1, now);
  EXPECT_EQ(Pass(), "+4");
}

TEST_F(Pooled, ASubmitToSeveralPartitionsFillsTheCapFirst) {
  Rules rules = TwoLabs();
  Add(0, Bit(kShort) | Bit(kOvercap), 8);
  Add(0, Bit(kShort) | Bit(kOvercap), 8);
  EXPECT_EQ(Pass(), "+1 +2");
  EXPECT_EQ(scheduler.job(0).partition, kShort);
  EXPECT_EQ(scheduler.job(1).partition, kOvercap);
}

TEST_F(Pooled, AGangStartsWholeOrNotAtAll) {
  Rules rules = TwoLabs();
  rules.nodes.push_back({"a2", 1, 8, 64, 256000, 8});
  rules.labs[1].gpu_cap = 16;
  scheduler = PooledScheduler(rules);
  for (const AccountRule& account : {AccountRule{0, 0, {}}, {0, 1, {}}, {1, 2, {}}})
    scheduler.AddAccount(account);
  const JobRef first = Add(0, Bit(kShort), 1, 1, 2);
  EXPECT_EQ(Pass(), "+1");
  Add(2, Bit(kShort), 8, 2, 2);
  EXPECT_EQ(Pass(), "");
  scheduler.Ended(first, now);
  EXPECT_EQ(Pass(), "+2");
}

TEST_F(Pooled, BackfillLetsThroughOnlyWhatIsGoneInTime) {
  Add(0, Bit(kShort), 4, 1, 2, 7200);
  Add(0, Bit(kShort), 4, 1, 1, 3600);
  EXPECT_EQ(Pass(), "+1 +2");
  Add(2, Bit(kShort), 8, 1, 1);       // waits for the titan_x until 3600
  Add(2, Bit(kLong), 4, 1, 1, 7200);  // would still be there
  EXPECT_EQ(Pass(), "");
  Add(0, Bit(kOvercap), 2, 1, 1, 1800);  // is gone by then
  EXPECT_EQ(Pass(), "+5");
}

TEST_F(Pooled, TheDebugLimitOfAUserHolds) {
  Add(0, Bit(kDebug), 3, 1, 3, 60);
  Add(0, Bit(kDebug), 3, 1, 3, 60);
  Add(2, Bit(kDebug), 5, 1, 3, 60);
  EXPECT_EQ(Pass(), "+3 +1");
}

TEST_F(Pooled, WhatCanNeverRunIsRefused) {
  PoolJob job;
  JobRef ref = 0;
  job.partitions = Bit(kShort);
  job.need = {1, 9, 1, 0, 3};
  EXPECT_EQ(scheduler.Submit(job, &ref), Refusal::kTooLarge);
  job.need = {2, 8, 1, 0, 3};
  EXPECT_EQ(scheduler.Submit(job, &ref), Refusal::kTooLarge) << "one node of each type";
  job.need = {1, 8, 1, 0, 3};
  job.limit_s = 3 * 86400;
  EXPECT_EQ(scheduler.Submit(job, &ref), Refusal::kNoPartition);
  job.partitions = Bit(kDebug);
  job.limit_s = 60;
  EXPECT_EQ(scheduler.Submit(job, &ref), Refusal::kOverLimit);
}

TEST_F(Pooled, NoJobReachesIntoAMaintenance) {
  Rules rules = TwoLabs();
  rules.nodes[0].closed = {{1000, 5000}};
  rules.nodes[1].closed = {{1000, 5000}};
  scheduler = PooledScheduler(rules);
  scheduler.AddAccount({0, 0, {}});
  Add(0, Bit(kShort), 4, 1, 3, 1200);
  Add(0, Bit(kShort), 1, 1, 3, 500);
  EXPECT_EQ(Pass(), "+2");
  EXPECT_EQ(scheduler.NextWakeS(), 5000);
  now = 5000;
  EXPECT_EQ(Pass(), "+1");
}

TEST_F(Pooled, CpuJobsKeepOffTheCpusOfFreeGpusWhereTheyCan) {
  Rules rules = TwoLabs();
  rules.nodes.push_back({"c1", -1, 0, 64, 256000, 0});
  scheduler = PooledScheduler(rules);
  scheduler.AddAccount({0, 0, {}});
  PoolJob job;
  job.key = job.seq = 1;
  job.partitions = Bit(kShort);
  job.need = {1, 0, 32, 0, 3};
  JobRef ref = 0;
  ASSERT_EQ(scheduler.Submit(job, &ref), Refusal::kNone);
  EXPECT_EQ(Pass(), "+1");
  EXPECT_EQ(scheduler.job(ref).shares.front().node, 2);
}

TEST(FairShareTest, WhoHasUsedLessGoesFirst) {
  Rules rules = TwoLabs();
  FairShare shares(rules);
  const int ann = shares.AddAccount(0), carol = shares.AddAccount(1);
  EXPECT_EQ(shares.Of(ann), shares.Of(carol));
  shares.Change(ann, 8, 0);
  shares.Change(ann, -8, 3600);
  EXPECT_TRUE(shares.Refresh(3600));
  EXPECT_LT(shares.Of(ann), shares.Of(carol));
  EXPECT_NEAR(shares.UsedBy(ann, 3600 + 7 * 86400), shares.UsedBy(ann, 3600) / 2, 1e-6);
}

TEST(VictimsTest, TheFewestFirstThenTheLeastLoss) {
  const std::vector<Candidate> candidates = {
      {1, {2, 0, 0}, 1}, {2, {2, 0, 0}, 1}, {3, {4, 0, 0}, 100}, {4, {4, 0, 0}, 50}};
  EXPECT_EQ(ChooseVictims({4, 0, 0}, candidates)->jobs, std::vector<uint32_t>{4});
  EXPECT_EQ(ChooseVictims({6, 0, 0}, candidates)->jobs, (std::vector<uint32_t>{1, 4}));
  EXPECT_FALSE(ChooseVictims({13, 0, 0}, candidates));
}

}  // namespace
}  // namespace overcap::pooled
