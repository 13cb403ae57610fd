// SPDX-License-Identifier: Apache-2.0
#include "sched/scheduler.h"

#include <gtest/gtest.h>

namespace overcap {
namespace {

constexpr int64_t kSecond = 1'000'000;

Machine MakeMachine(int gpus, int cpus = 8, int64_t mem = 64, const std::string& type = "a40") {
  Machine machine{"here", cpus, mem, {}};
  for (int i = 0; i < gpus; ++i) machine.gpus.push_back({i, type, "", 0});
  return machine;
}

Scheduler On(const Machine& machine) {
  Scheduler scheduler;
  scheduler.SetNodes({machine});
  return scheduler;
}

Resources Gpus(int gpus, int64_t seconds = 0) {
  Resources resources;
  resources.gpus = gpus;
  resources.time_seconds = seconds;
  return resources;
}

Resources Cpus(int cpus, int64_t mem = 0) {
  Resources resources;
  resources.cpus = cpus;
  resources.mem_bytes = mem;
  return resources;
}

void Submit(Scheduler* scheduler, uint64_t key, const Resources& resources, int priority = 0, int slots = 1) {
  scheduler->Enqueue({key, key, priority, resources, slots, 0});
}

// "1:0[0,1] 2:0[2]": key, slot and GPUs of each start.
std::string Started(Scheduler* scheduler, int64_t now_us = 0) {
  std::string out;
  for (const Start& start : scheduler->Pass(now_us)) {
    if (!out.empty()) out += ' ';
    out += std::to_string(start.key) + ':' + std::to_string(start.slot) + '[';
    for (size_t i = 0; i < start.allocation.gpus.size(); ++i) {
      out += (i == 0 ? "" : ",") + std::to_string(start.allocation.gpus[i]);
    }
    out += ']';
  }
  return out;
}

TEST(SchedulerTest, JobsStartInOrderOnTheLowestGpus) {
  Scheduler scheduler = On(MakeMachine(4));
  Submit(&scheduler, 1, Gpus(1));
  Submit(&scheduler, 2, Gpus(2));
  Submit(&scheduler, 3, Gpus(2));
  EXPECT_EQ(Started(&scheduler), "1:0[0] 2:0[1,2]");
  scheduler.Release(1, 0);
  EXPECT_EQ(Started(&scheduler), "3:0[0,3]");
  EXPECT_EQ(scheduler.FreeGpus(), 0);
}

TEST(SchedulerTest, HigherPriorityGoesFirst) {
  Scheduler scheduler = On(MakeMachine(1));
  Submit(&scheduler, 1, Gpus(1), 0);
  Submit(&scheduler, 2, Gpus(1), 5);
  EXPECT_EQ(Started(&scheduler), "2:0[0]");
}

TEST(SchedulerTest, ARequeuedJobGoesToItsOldPlace) {
  Scheduler scheduler = On(MakeMachine(1));
  Submit(&scheduler, 1, Gpus(1));
  Submit(&scheduler, 2, Gpus(1));
  EXPECT_EQ(Started(&scheduler), "1:0[0]");
  scheduler.Release(1, 0);
  scheduler.Remove(1);
  Submit(&scheduler, 1, Gpus(1));
  EXPECT_EQ(Started(&scheduler), "1:0[0]");
}

TEST(SchedulerTest, AShortJobRunsWhileALargeOneWaitsAndALongOneDoesNot) {
  Scheduler scheduler = On(MakeMachine(4));
  Submit(&scheduler, 1, Gpus(2, 100));
  EXPECT_EQ(Started(&scheduler), "1:0[0,1]");
  Submit(&scheduler, 2, Gpus(4, 10));   // waits until 100 s
  Submit(&scheduler, 3, Gpus(1, 101));  // would end too late
  Submit(&scheduler, 4, Gpus(1));       // ends nobody knows when
  Submit(&scheduler, 5, Gpus(1, 100));
  EXPECT_EQ(Started(&scheduler), "5:0[2]");
  scheduler.Release(1, 0);
  EXPECT_EQ(Started(&scheduler, 50 * kSecond), "");
  scheduler.Release(5, 0);
  EXPECT_EQ(Started(&scheduler, 60 * kSecond), "2:0[0,1,2,3]");
}

TEST(SchedulerTest, WhatFitsBesideTheReservationMayRunForEver) {
  Scheduler scheduler = On(MakeMachine(4));
  Submit(&scheduler, 1, Gpus(2, 100));
  EXPECT_EQ(Started(&scheduler), "1:0[0,1]");
  Submit(&scheduler, 2, Gpus(3));
  Submit(&scheduler, 3, Gpus(1));
  Submit(&scheduler, 4, Gpus(1));
  EXPECT_EQ(Started(&scheduler), "3:0[2]");
}

TEST(SchedulerTest, WithoutTimeLimitsWhatBecomesFreeIsKeptForTheFirstJob) {
  Scheduler scheduler = On(MakeMachine(4));
  for (uint64_t key = 1; key <= 4; ++key) Submit(&scheduler, key, Gpus(1));
  EXPECT_EQ(Started(&scheduler), "1:0[0] 2:0[1] 3:0[2] 4:0[3]");
  Submit(&scheduler, 5, Gpus(2));
  Submit(&scheduler, 6, Gpus(1, 1));
  scheduler.Release(4, 0);
  EXPECT_EQ(Started(&scheduler), "");
  scheduler.Release(2, 0);
  EXPECT_EQ(Started(&scheduler), "5:0[1,3]");
}

// Small jobs arrive for ever, each runs for one second after those of the second before.
int64_t SecondsUntilALargeJobStarts(int64_t limit_of_small, int64_t limit_given) {
  Scheduler scheduler = On(MakeMachine(4));
  constexpr uint64_t kLarge = 1'000'000;
  std::vector<Start> runs;
  uint64_t key = 0;
  for (int64_t second = 0; second < 1000; ++second) {
    for (const Start& run : runs) {
      if (run.key % 2 == static_cast<uint64_t>(second % 2)) scheduler.Release(run.key, run.slot);
    }
    std::erase_if(runs, [&](const Start& run) { return run.key % 2 == static_cast<uint64_t>(second % 2); });
    for (int i = 0; i < 4; ++i)
      scheduler.Enqueue({++key, key + (second > 10 ? kLarge : 0), 0, Gpus(1, limit_of_small), 1, 0});
    if (second == 10) scheduler.Enqueue({kLarge, kLarge, 0, Gpus(4, limit_given), 1, 0});
    for (Start& start : scheduler.Pass(second * kSecond)) {
      if (start.key == kLarge) return second;
      runs.push_back(std::move(start));
    }
  }
  return -1;
}

TEST(SchedulerTest, AStreamOfSmallJobsStarvesNoLargeOne) {
  for (const int64_t limit_of_small : {0, 1, 2, 50}) {
    for (const int64_t limit_given : {0, 5})
      EXPECT_GT(SecondsUntilALargeJobStarts(limit_of_small, limit_given), 10);
  }
}

TEST(SchedulerTest, AJobThatCanNeverRunHoldsNobodyUp) {
  Scheduler scheduler = On(MakeMachine(2));
  Submit(&scheduler, 1, Gpus(3));
  Submit(&scheduler, 2, Gpus(2));
  EXPECT_EQ(Started(&scheduler), "2:0[0,1]");
  EXPECT_EQ(scheduler.Explain(1, 0), "asks for 3 GPUs, this machine has 2");
}

TEST(SchedulerTest, TypesAreMatched) {
  Machine machine = MakeMachine(4, 8, 64, "rtx_6000");
  machine.gpus[2].type = "a40";
  Scheduler scheduler = On(machine);
  Resources a40 = Gpus(1);
  a40.gpu_type = "a40";
  Submit(&scheduler, 1, a40);
  Submit(&scheduler, 2, a40);
  Submit(&scheduler, 3, Gpus(2));
  EXPECT_EQ(Started(&scheduler), "1:0[2] 3:0[0,1]");
  EXPECT_EQ(scheduler.Explain(2, 0), "waits for 1 GPU of type 'a40'");
}

TEST(SchedulerTest, CpusAreHandedOutByIdAndMemoryIsCounted) {
  Scheduler scheduler = On(MakeMachine(0, 4, 10));
  Submit(&scheduler, 1, Cpus(2, 4));
  Submit(&scheduler, 2, Cpus(1, 4));
  Submit(&scheduler, 3, Cpus(1, 4));
  const std::vector<Start> starts = scheduler.Pass(0);
  ASSERT_EQ(starts.size(), 2u);
  EXPECT_EQ(starts[0].allocation.cpus, (std::vector<int>{0, 1}));
  EXPECT_EQ(starts[1].allocation.cpus, (std::vector<int>{2}));
  EXPECT_EQ(scheduler.Explain(3, 0), "waits for 4 B of memory");
}

TEST(SchedulerTest, CpusOfACpusetAreHandedOutByTheirOwnIds) {
  Machine machine = MakeMachine(0, 3);
  machine.cpu_ids = {8, 11, 12, 13};
  Scheduler scheduler = On(machine);
  Submit(&scheduler, 1, Cpus(1));
  Submit(&scheduler, 2, Cpus(2));
  std::vector<Start> starts = scheduler.Pass(0);
  ASSERT_EQ(starts.size(), 2u);
  EXPECT_EQ(starts[0].allocation.cpus, (std::vector<int>{8}));
  EXPECT_EQ(starts[1].allocation.cpus, (std::vector<int>{11, 12}));
  scheduler.Release(2, starts[1].slot);
  Submit(&scheduler, 3, Cpus(1));
  starts = scheduler.Pass(0);
  ASSERT_EQ(starts.size(), 1u);
  EXPECT_EQ(starts[0].allocation.cpus, (std::vector<int>{11}));
}

TEST(SchedulerTest, JobsThatAskForNothingTakeOneCpuEach) {
  Scheduler scheduler = On(MakeMachine(0, 2));
  for (uint64_t key = 1; key <= 3; ++key) Submit(&scheduler, key, Resources{});
  EXPECT_EQ(Started(&scheduler), "1:0[] 2:0[]");
  EXPECT_EQ(scheduler.Explain(3, 0), "waits for 1 CPU");
}

TEST(SchedulerTest, AnArrayTakesManySlotsWithEverNewNumbers) {
  Scheduler scheduler = On(MakeMachine(2));
  Submit(&scheduler, 1, Gpus(1), 0, 5);
  EXPECT_EQ(Started(&scheduler), "1:0[0] 1:1[1]");
  scheduler.UpdateSlots(1, 1);
  scheduler.Release(1, 0);
  EXPECT_EQ(Started(&scheduler), "1:2[0]");
  scheduler.Release(1, 1);
  scheduler.Release(1, 2);
  EXPECT_EQ(Started(&scheduler), "");
  scheduler.UpdateSlots(1, 1);
  EXPECT_EQ(Started(&scheduler), "1:3[0]");
}

TEST(SchedulerTest, AnArrayMayBeginAtALaterSlot) {
  Scheduler scheduler = On(MakeMachine(2));
  scheduler.Enqueue({1, 1, 0, Gpus(1), 1, 7});
  EXPECT_EQ(Started(&scheduler), "1:7[0]");
}

TEST(SchedulerTest, AdoptedWorkKeepsItsGpusAndMayGrow) {
  Scheduler scheduler = On(MakeMachine(3));
  scheduler.Adopt({1, 0, 4, 0, Gpus(1), {0, {1}, {}}, 0});
  Submit(&scheduler, 2, Gpus(1));
  EXPECT_EQ(Started(&scheduler), "2:0[0]");
  scheduler.UpdateSlots(1, 1);
  EXPECT_EQ(Started(&scheduler), "1:5[2]");
  scheduler.Release(1, 4);
  EXPECT_EQ(scheduler.FreeGpuIndices(), (std::vector<int>{1}));
}

TEST(SchedulerTest, SlotsOfLanesThatEndedBeforeAreNotUsedAgain) {
  Scheduler scheduler = On(MakeMachine(2));
  scheduler.Adopt({1, 0, 4, 0, Gpus(1), {0, {0}, {}}, 0, 9});
  scheduler.UpdateSlots(1, 1);
  EXPECT_EQ(Started(&scheduler), "1:9[1]");
}

TEST(SchedulerTest, AdoptedWorkOfAMachineThatHasShrunkDoesNoHarm) {
  Scheduler scheduler = On(MakeMachine(1, 1));
  scheduler.Adopt({1, 1, 0, 0, Gpus(2), {0, {0, 7}, {9}}, 0});
  scheduler.Adopt({2, 2, 0, 0, Gpus(1), {3, {0}, {}}, 0});
  EXPECT_EQ(scheduler.FreeGpus(), 0);
  scheduler.Release(1, 0);
  scheduler.Release(2, 0);
  EXPECT_EQ(scheduler.FreeGpus(), 1);
}

TEST(SchedulerTest, AStartThatCouldNotBeMadeIsMadeAgain) {
  Scheduler scheduler = On(MakeMachine(1));
  Submit(&scheduler, 1, Gpus(1));
  const std::vector<Start> starts = scheduler.Pass(0);
  ASSERT_EQ(starts.size(), 1u);
  scheduler.Undo(starts[0]);
  EXPECT_EQ(scheduler.Pass(0), starts);
}

TEST(SchedulerTest, ARemovedJobIsForgottenWhenItsLastSlotEnds) {
  Scheduler scheduler = On(MakeMachine(2));
  Submit(&scheduler, 1, Gpus(1), 0, 5);
  EXPECT_EQ(Started(&scheduler), "1:0[0] 1:1[1]");
  scheduler.Remove(1);
  scheduler.Release(1, 0);
  scheduler.UpdateSlots(1, 3);
  EXPECT_EQ(Started(&scheduler), "");
  scheduler.Release(1, 1);
  Submit(&scheduler, 1, Gpus(1));
  EXPECT_EQ(Started(&scheduler), "1:0[0]");
}

TEST(SchedulerTest, AMachineThatGrowsStartsWhatWaited) {
  Scheduler scheduler = On(MakeMachine(1));
  Submit(&scheduler, 1, Gpus(1));
  Submit(&scheduler, 2, Gpus(2));
  EXPECT_EQ(Started(&scheduler), "1:0[0]");
  scheduler.SetNodes({MakeMachine(3)});
  EXPECT_EQ(Started(&scheduler), "2:0[1,2]");
}

TEST(SchedulerTest, SeveralMachinesArePacked) {
  Scheduler scheduler;
  scheduler.SetNodes({MakeMachine(4), MakeMachine(2)});
  Submit(&scheduler, 1, Gpus(1));
  Submit(&scheduler, 2, Gpus(4));
  const std::vector<Start> starts = scheduler.Pass(0);
  ASSERT_EQ(starts.size(), 2u);
  EXPECT_EQ(starts[0].allocation, (Grant{1, {0}, {}}));
  EXPECT_EQ(starts[1].allocation, (Grant{0, {0, 1, 2, 3}, {}}));
}

TEST(SchedulerTest, WhyAJobWaitsIsSaid) {
  Scheduler scheduler = On(MakeMachine(4));
  Submit(&scheduler, 1, Gpus(2));
  EXPECT_EQ(Started(&scheduler), "1:0[0,1]");
  Submit(&scheduler, 2, Gpus(4));
  Submit(&scheduler, 3, Gpus(1), -1);
  EXPECT_EQ(Started(&scheduler), "");
  EXPECT_EQ(scheduler.Explain(1, 0), "");
  EXPECT_EQ(scheduler.Explain(2, 0), "waits for 2 of 4 GPUs");
  EXPECT_EQ(scheduler.Explain(3, 0),
            "waits: what is free is kept for an earlier job; 1 job ahead, higher priority first");
  for (uint64_t key = 10; key < 200; ++key) Submit(&scheduler, key, Gpus(4));
  EXPECT_EQ(scheduler.Explain(11, 0), "waits for 2 of 4 GPUs; 2 jobs ahead");
  EXPECT_EQ(scheduler.Explain(199, 0), "waits for 2 of 4 GPUs; more than 99 jobs ahead");
}

TEST(SchedulerTest, WhatCanNeverRunIsRefusedWithNumbers) {
  const Scheduler scheduler = On(MakeMachine(4, 8, int64_t{64} << 30));
  EXPECT_TRUE(scheduler.Fits(Gpus(4)));
  EXPECT_EQ(scheduler.Fits(Gpus(8)).error().message, "asks for 8 GPUs, this machine has 4");
  EXPECT_EQ(scheduler.Fits(Cpus(9)).error().message, "asks for 9 CPUs, this machine has 8");
  Resources two_nodes = Gpus(2);
  two_nodes.nodes = 2;
  EXPECT_EQ(scheduler.Fits(two_nodes).error().message, "asks for 2 nodes, this machine is one");
}

TEST(Scheduler, AnElasticJobGetsAsManyNodesAsThereIsRoomForAndGivesAllBack) {
  Machine machine;
  machine.cpus = 8;
  for (int i = 0; i < 5; ++i) machine.gpus.push_back({i, "a40", "", 0});
  Scheduler scheduler;
  scheduler.SetNodes({machine});
  Resources wanted;
  wanted.nodes = 1, wanted.max_nodes = 4, wanted.gpus = 2, wanted.cpus = 1;
  scheduler.Enqueue({1, 1, 0, wanted});
  const std::vector<Start> starts = scheduler.Pass(1);
  ASSERT_EQ(starts.size(), 1u);
  EXPECT_EQ(starts[0].allocation, (Grant{0, {0, 1, 2, 3}, {0, 1}, 2}));
  EXPECT_EQ(scheduler.FreeCpus(), 6);
  // The next one has room for one node only on what is left when that is its least.
  wanted.gpus = 1;
  scheduler.Enqueue({2, 2, 0, wanted});
  const std::vector<Start> more = scheduler.Pass(1);
  ASSERT_EQ(more.size(), 1u);
  EXPECT_EQ(more[0].allocation.nodes, 1);
  scheduler.Release(1, 0);
  scheduler.Release(2, 0);
  EXPECT_EQ(scheduler.FreeCpus(), 8);
  EXPECT_EQ(scheduler.FreeGpus(), 5);
}

TEST(Scheduler, AnElasticJobWaitsForItsLeastAndIsRefusedWhenThatCanNeverBe) {
  Machine machine;
  machine.cpus = 4;
  for (int i = 0; i < 2; ++i) machine.gpus.push_back({i, "a40", "", 0});
  Scheduler scheduler;
  scheduler.SetNodes({machine});
  Resources one;
  one.gpus = 1, one.cpus = 1;
  scheduler.Enqueue({1, 1, 0, one});
  ASSERT_EQ(scheduler.Pass(1).size(), 1u);
  Resources wanted;
  wanted.nodes = 2, wanted.max_nodes = 4, wanted.gpus = 2, wanted.cpus = 1;
  EXPECT_TRUE(scheduler.Fits(wanted));
  scheduler.Enqueue({2, 2, 0, wanted});
  EXPECT_TRUE(scheduler.Pass(1).empty());
  scheduler.Release(1, 0);
  const std::vector<Start> starts = scheduler.Pass(2);
  ASSERT_EQ(starts.size(), 1u);
  EXPECT_EQ(starts[0].allocation.nodes, 2);
  wanted.nodes = 3, wanted.gpus = 3;
  EXPECT_FALSE(scheduler.Fits(wanted));
}

}  // namespace
}  // namespace overcap
