// SPDX-License-Identifier: Apache-2.0
#include "daemon/job_table.h"

#include <gtest/gtest.h>

namespace overcap {
namespace {

Event Of(EventKind kind, const std::string& id) {
  Event event;
  event.kind = kind;
  event.time_us = 10;
  event.id = id;
  return event;
}

Event Submit(const std::string& id) {
  Event event = Of(EventKind::kSubmitted, id);
  event.spec.id = id;
  event.spec.command = {"true"};
  return event;
}

Event Start(const std::string& id, int attempt, int slot) {
  Event event = Of(EventKind::kStarted, id);
  event.attempt = attempt;
  event.slot = slot;
  event.gpus = {0};
  return event;
}

Event EndSlot(const std::string& id, int attempt, int slot, JobState state) {
  Event event = Of(EventKind::kSlotEnded, id);
  event.attempt = attempt;
  event.slot = slot;
  event.ending.state = state;
  return event;
}

Event End(const std::string& id, JobState state) {
  Event event = Of(EventKind::kEnded, id);
  event.ending.state = state;
  event.ending.exit_status = 4;
  return event;
}

constexpr char kId[] = "ann_1700000000_00000001";

TEST(JobTableTest, LastIsTheOneThatTheJournalHasLast) {
  JobTable table;
  for (const auto& [id, submitted_us] : {std::pair("ann_1700000009_00000001", 9), std::pair(kId, 5)}) {
    Event event = Submit(id);
    event.spec.submitted_us = submitted_us;
    ASSERT_TRUE(table.Apply(event));
  }
  EXPECT_EQ(*table.Resolve("last"), kId);
}

TEST(JobTableTest, AJobGoesThroughItsLife) {
  JobTable table;
  ASSERT_TRUE(table.Apply(Submit(kId)));
  EXPECT_EQ(table.Find(kId)->state, JobState::kQueued);
  ASSERT_TRUE(table.Apply(Start(kId, 1, 0)));
  EXPECT_EQ(table.Count(JobState::kRunning), 1);
  ASSERT_TRUE(table.Apply(EndSlot(kId, 1, 0, JobState::kFailed)));
  EXPECT_TRUE(table.Find(kId)->slots.empty());
  ASSERT_TRUE(table.Apply(End(kId, JobState::kFailed)));
  EXPECT_EQ(table.Find(kId)->ending.exit_status, 4);
  EXPECT_EQ(table.ActiveCount(), 0);
  ASSERT_TRUE(table.Apply(Of(EventKind::kRemoved, kId)));
  EXPECT_EQ(table.Find(kId), nullptr);
  EXPECT_EQ(table.Count(JobState::kFailed), 0);
}

TEST(JobTableTest, TheGpusOfTheLastAttemptAreKeptAfterTheEnd) {
  JobTable table;
  Event array = Submit("ann_1700000000_00000002");
  array.spec.array = *ParseArraySpec("0-9");
  for (const Event& submit : {Submit(kId), array}) {
    ASSERT_TRUE(table.Apply(submit));
    for (const int gpu : {3, 1}) {
      const int at = gpu == 3 ? 0 : 1;
      Event start = submit.spec.array.empty() ? Start(submit.id, at + 1, 0) : Start(submit.id, 1, at);
      start.gpus = {gpu};
      ASSERT_TRUE(table.Apply(start));
      ASSERT_TRUE(table.Apply(EndSlot(submit.id, start.attempt, start.slot, JobState::kFailed)));
    }
    ASSERT_TRUE(table.Apply(End(submit.id, JobState::kFailed)));
  }
  EXPECT_EQ(table.Find(kId)->last_gpus, std::vector<int>{1});
  EXPECT_EQ(table.Find(array.id)->last_gpus, (std::vector<int>{1, 3})) << "all lanes of the array";
}

TEST(JobTableTest, EventsThatDoNotFitAreRefused) {
  JobTable table;
  EXPECT_FALSE(table.Apply(Of(EventKind::kHeld, kId)));
  ASSERT_TRUE(table.Apply(Submit(kId)));
  EXPECT_FALSE(table.Apply(Submit(kId)));
  EXPECT_FALSE(table.Apply(EndSlot(kId, 1, 0, JobState::kFailed)));
  ASSERT_TRUE(table.Apply(Start(kId, 1, 0)));
  EXPECT_FALSE(table.Apply(Start(kId, 1, 0))) << "one slot cannot be given twice";
  ASSERT_TRUE(table.Apply(End(kId, JobState::kCancelled)));
  EXPECT_FALSE(table.Apply(Start(kId, 2, 0))) << "an ended job cannot start";
}

TEST(JobTableTest, DependentsAreFoundUntilTheyHaveEnded) {
  JobTable table;
  ASSERT_TRUE(table.Apply(Submit(kId)));
  Event second = Submit("ann_1700000000_00000002");
  second.spec.after = {{kId, false}};
  ASSERT_TRUE(table.Apply(second));
  ASSERT_EQ(table.Dependents(kId).size(), 1u);
  ASSERT_TRUE(table.Apply(End(second.id, JobState::kCancelled)));
  EXPECT_TRUE(table.Dependents(kId).empty());
}

// Folding the compact list gives the same jobs as folding all events did.
TEST(JobTableTest, TheCompactListGivesTheSameTable) {
  JobTable table;
  const std::string array_id = "ann_1700000000_00000003";
  Event array = Submit(array_id);
  array.spec.array = *ParseArraySpec("0-9%2");
  array.spec.requeue = true;
  Event lane_end = EndSlot(array_id, 1, 0, JobState::kLost);
  lane_end.tasks = {3, {{4, 1}}, {5}};
  Event cancel = Of(EventKind::kCancel, "ann_1700000000_00000002");
  cancel.reason = "enough";
  for (const Event& event :
       {Submit(kId), Start(kId, 1, 0), EndSlot(kId, 1, 0, JobState::kFailed), End(kId, JobState::kFailed),
        Submit("ann_1700000000_00000002"), Start("ann_1700000000_00000002", 1, 0), cancel, array,
        Start(array_id, 1, 0), Start(array_id, 1, 1), lane_end}) {
    ASSERT_TRUE(table.Apply(event));
  }
  JobTable again;
  for (const Event& event : table.Compact()) {
    const auto decoded = EventFromJson(EventToJson(event));
    ASSERT_TRUE(decoded) << decoded.error().message;
    ASSERT_TRUE(again.Apply(*decoded));
  }
  for (const auto& [key, job] : table.jobs()) {
    const Job* copy = again.Find(job->spec.id);
    ASSERT_NE(copy, nullptr);
    EXPECT_EQ(copy->spec, job->spec);
    EXPECT_EQ(copy->state, job->state);
    EXPECT_EQ(copy->progress, job->progress) << job->spec.id;
    EXPECT_EQ(copy->last_gpus, job->last_gpus) << job->spec.id;
    ASSERT_EQ(copy->slots.size(), job->slots.size());
    for (size_t i = 0; i < job->slots.size(); ++i) EXPECT_EQ(copy->slots[i].gpus, job->slots[i].gpus);
    if (!job->array) continue;
    EXPECT_EQ(copy->array->done, job->array->done);
    EXPECT_EQ(copy->array->retry, std::vector<int>{5});
  }
}

TEST(JobTableTest, WhoWasToldToGoStaysToldWhenTheJournalIsRewritten) {
  JobTable table;
  Event array = Submit(kId);
  array.spec.array = *ParseArraySpec("0-9");
  Event start = Start(kId, 1, 0), preempt = Of(EventKind::kPreempt, kId);
  start.partition = "overcap";
  preempt.attempt = 1, preempt.slot = 0, preempt.by = "bob_1700000000_00000002", preempt.stop_us = 99;
  Event lane_end = EndSlot(kId, 1, 1, JobState::kPreempted);
  lane_end.tasks.lost = {3};
  Event other = preempt;
  other.slot = 1;
  for (const Event& event : {array, start, Start(kId, 1, 1), other, lane_end, preempt, preempt})
    ASSERT_TRUE(table.Apply(event));
  const Job* job = table.Find(kId);
  EXPECT_EQ(job->progress.preemptions, 2) << "told twice is told once";
  EXPECT_EQ(job->array->retry, std::vector<int>{3}) << "also without --requeue";
  JobTable again;
  for (const Event& event : table.Compact()) ASSERT_TRUE(again.Apply(*EventFromJson(EventToJson(event))));
  const Job* copy = again.Find(kId);
  EXPECT_EQ(copy->progress, job->progress);
  EXPECT_EQ(copy->array->retry, job->array->retry);
  ASSERT_EQ(copy->slots.size(), 1U);
  EXPECT_EQ(copy->slots[0].partition, "overcap");
  ASSERT_TRUE(copy->slots[0].preemption);
  EXPECT_EQ(std::pair(copy->slots[0].preemption->by, copy->slots[0].preemption->stop_us),
            std::pair(preempt.by, int64_t{99}));
}

}  // namespace
}  // namespace overcap
