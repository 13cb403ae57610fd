// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/job_verdict.h"

#include <csignal>
#include <gtest/gtest.h>

namespace overcap {
namespace {

constexpr int64_t kSecond = 1'000'000;
constexpr int64_t kNow = 1'800'000'000 * kSecond;

JobEvidence Sent() {
  JobEvidence evidence;
  evidence.spec.id = "me_1799999000_00000001";
  evidence.spec.command = {"true"};
  evidence.spec.submitted_us = kNow - 1000 * kSecond;
  evidence.folder = "/jobs/me_1799999000_00000001";
  evidence.handle = SlurmHandle{"sky", 7, "submit", kNow - 999 * kSecond};
  return evidence;
}

JobEvidence Started(int64_t touched_us = kNow - 10 * kSecond) {
  JobEvidence evidence = Sent();
  evidence.last.attempt = 1;
  evidence.last.slurm_id = 7;
  evidence.last.report.started = true;
  evidence.last.report.started_us = kNow - 500 * kSecond;
  evidence.last.touched_us = touched_us;
  return evidence;
}

JobEvidence Ended(JobState state, int exit_status, std::string reason = "") {
  JobEvidence evidence = Started();
  evidence.last.report.end = Ending{state, exit_status, 0, exit_status == 0 ? -1 : 0, std::move(reason)};
  evidence.last.report.ended_us = kNow - 5 * kSecond;
  return evidence;
}

SqueueJob Row(std::string state, std::string reason = "None") {
  SqueueJob row;
  row.job_id = 7;
  row.raw_state = std::move(state);
  row.raw_reason = std::move(reason);
  return row;
}

SqueueJob EndedRow(std::string state, int64_t seconds_ago = 60) {
  SqueueJob row = Row(std::move(state));
  row.start_us = kNow - 500 * kSecond;
  row.end_us = kNow - seconds_ago * kSecond;
  return row;
}

SlurmSight Empty() {
  SlurmSight sight;
  sight.asked = true;
  sight.taken_us = kNow - kSecond;
  return sight;
}

SlurmSight With(const SqueueJob& row) {
  SlurmSight sight = Empty();
  sight.rows = {&row};
  return sight;
}

SlurmSight Accounts(std::vector<SacctJob> rows) {
  SlurmSight sight = Empty();
  sight.accounting = SlurmSight::Accounting::kAsked;
  sight.accounts = std::move(rows);
  return sight;
}

JobRecord Judged(const JobEvidence& evidence, const SlurmSight& sight) {
  return JudgeJob(evidence, sight, kNow).record;
}

TEST(JobVerdict, WhatTheAgentSaysOfTheEndCountsWhateverSlurmSays) {
  const SqueueJob row = EndedRow("NODE_FAIL");
  const JobRecord record = Judged(Ended(JobState::kFailed, 3), With(row));
  EXPECT_EQ(record.state, JobState::kFailed);
  EXPECT_EQ(record.exit_status, 3);
  EXPECT_EQ(record.first_failed_rank, 0);
  EXPECT_EQ(record.ended_us, kNow - 5 * kSecond);
  EXPECT_EQ(record.raw_state, "NODE_FAIL");
  EXPECT_EQ(Judged(Ended(JobState::kSucceeded, 0), {}).state, JobState::kSucceeded);
}

TEST(JobVerdict, AWaitingJobWaitsForTheReasonThatSlurmGives) {
  const SqueueJob row = Row("PENDING", "Resources");
  const JobRecord record = Judged(Sent(), With(row));
  EXPECT_EQ(record.state, JobState::kQueued);
  EXPECT_FALSE(record.reason.empty());
  EXPECT_EQ(record.raw_state, "PENDING");
  EXPECT_EQ(record.attempt, 0);
  EXPECT_EQ(record.started_us, 0);
}

TEST(JobVerdict, AJobThatWasHeldOrReleasedAfterTheQueueWasReadIsSo) {
  JobEvidence evidence = Sent();
  const SqueueJob waits = Row("PENDING", "Priority"), held = Row("PENDING", "JobHeldUser");
  evidence.hold = HoldAct{kNow, true};
  EXPECT_EQ(Judged(evidence, With(waits)).state, JobState::kHeld);
  evidence.hold = HoldAct{kNow, false};
  EXPECT_EQ(Judged(evidence, With(held)).state, JobState::kQueued);
  evidence.hold = HoldAct{kNow - 100 * kSecond, false};
  EXPECT_EQ(Judged(evidence, With(held)).state, JobState::kHeld) << "somebody held it again";
}

TEST(JobVerdict, AQueueThatIsOlderThanTheStartDoesNotHideIt) {
  const SqueueJob row = Row("PENDING", "BeginTime");
  const JobRecord record = Judged(Started(), With(row));
  EXPECT_EQ(record.state, JobState::kRunning);
  EXPECT_EQ(record.reason, "") << "that is of the time before the start";
  EXPECT_EQ(record.started_us, kNow - 500 * kSecond);
}

TEST(JobVerdict, AnAttemptThatSlurmHasPutBackIsOverWithoutAWord) {
  SqueueJob row = Row("PENDING", "BeginTime");
  row.restarts = 1;
  const JobRecord record = Judged(Started(), With(row));
  EXPECT_EQ(record.state, JobState::kQueued);
  EXPECT_EQ(record.attempt, 1);
  EXPECT_EQ(record.started_us, 0);
}

TEST(JobVerdict, AnAttemptThatAskedToBeRepeatedWaits) {
  JobEvidence evidence = Ended(JobState::kPreempted, -1);
  evidence.last.report.requeue = "preempted";
  SqueueJob row = Row("PENDING", "BeginTime");
  row.restarts = 1;
  EXPECT_EQ(Judged(evidence, With(row)).state, JobState::kQueued);
  const SqueueJob ending = Row("COMPLETING");
  EXPECT_EQ(Judged(evidence, With(ending)).state, JobState::kRunning);
}

TEST(JobVerdict, AFailureThatSlurmItselfSendsBackIsNotTheEndASuccessIs) {
  SqueueJob row = Row("PENDING", "BeginTime");
  row.restarts = 1;
  SlurmSight sight = Empty();
  sight.rows = {&row};
  EXPECT_EQ(JudgeJob(Ended(JobState::kFailed, 9), sight, kNow).record.state, JobState::kQueued);
  EXPECT_EQ(JudgeJob(Ended(JobState::kSucceeded, 0), sight, kNow).record.state, JobState::kSucceeded);
  row.restarts = 0;
  EXPECT_EQ(JudgeJob(Ended(JobState::kFailed, 9), sight, kNow).record.state, JobState::kFailed);
}

TEST(JobVerdict, OneThatAskedInVainHasEnded) {
  JobEvidence evidence = Ended(JobState::kPreempted, -1, "preempted");
  evidence.last.report.requeue = "preempted";
  const SqueueJob row = EndedRow("PREEMPTED");
  const JobRecord record = Judged(evidence, With(row));
  EXPECT_EQ(record.state, JobState::kCancelled);
  EXPECT_EQ(record.reason, "preempted; was not started again");
  EXPECT_EQ(record.raw_state, "PREEMPTED");
}

TEST(JobVerdict, AJobThatTheControllerForgotRunsAsLongAsItsAgentGivesSigns) {
  EXPECT_EQ(Judged(Started(), Empty()).state, JobState::kRunning);
  EXPECT_TRUE(JudgeJob(Started(kNow - 200 * kSecond), Empty(), kNow).ask_accounting);
}

TEST(JobVerdict, AnEndThatSlurmTellsIsTakenWhenTheAgentIsSilent) {
  const SqueueJob failed = EndedRow("NODE_FAIL"), late = EndedRow("NODE_FAIL", 2);
  EXPECT_EQ(Judged(Started(kNow - 70 * kSecond), With(failed)).state, JobState::kLost);
  EXPECT_EQ(Judged(Started(kNow - 3 * kSecond), With(failed)).state, JobState::kRunning)
      << "it gave signs long after";
  EXPECT_EQ(Judged(Started(kNow - 3 * kSecond), With(late)).state, JobState::kRunning)
      << "its last line may be on its way";
}

TEST(JobVerdict, AnEndBeforeAnyStartIsSlurms) {
  const SqueueJob row = EndedRow("CANCELLED");
  JobEvidence evidence = Sent();
  evidence.cancel = CancelWish{kNow - 61 * kSecond, "me", "enough"};
  const JobRecord record = Judged(evidence, With(row));
  EXPECT_EQ(record.state, JobState::kCancelled);
  EXPECT_EQ(record.reason, "enough");
  EXPECT_EQ(record.attempt, 0);
  EXPECT_GE(record.ended_us, evidence.spec.submitted_us);
}

TEST(JobVerdict, ARankThatTheCancelKilledIsCancelled) {
  JobEvidence evidence = Ended(JobState::kFailed, 143);
  evidence.last.report.end->signal = SIGTERM;
  EXPECT_EQ(Judged(evidence, Empty()).state, JobState::kFailed);
  evidence.cancel = CancelWish{kNow - 6 * kSecond, "me", "enough"};
  EXPECT_EQ(Judged(evidence, Empty()).state, JobState::kCancelled);
  EXPECT_EQ(Judged(evidence, Empty()).reason, "enough");
  evidence.cancel->at_us = kNow;
  EXPECT_EQ(Judged(evidence, Empty()).state, JobState::kFailed) << "it had died before";
}

TEST(JobVerdict, AYoungJobIsQueuedThoughTheQueueDoesNotShowIt) {
  JobEvidence evidence = Sent();
  evidence.handle->at_us = kNow;
  EXPECT_EQ(Judged(evidence, Empty()).state, JobState::kQueued);
  evidence.spec.hold = true;
  EXPECT_EQ(Judged(evidence, Empty()).state, JobState::kHeld);
  evidence.handle.reset();
  evidence.sending = true;
  EXPECT_EQ(Judged(evidence, Empty()).state, JobState::kHeld) << "its submit still waits for the answer";
  evidence.sending = false;
  EXPECT_FALSE(JudgeJob(evidence, Empty(), kNow).record.state == JobState::kHeld);
  evidence.made_us = kNow - 5 * kSecond;
  EXPECT_EQ(Judged(evidence, Empty()).state, JobState::kHeld) << "its submit died just now";
}

TEST(JobVerdict, AForgottenJobIsWhatTheAccountsSay) {
  EXPECT_TRUE(JudgeJob(Sent(), Empty(), kNow).ask_accounting);
  SacctJob account;
  account.job_id = 7;
  account.raw_state = "TIMEOUT";
  account.start_us = kNow - 400 * kSecond, account.end_us = kNow - 300 * kSecond;
  const JobRecord record = Judged(Started(kNow - 300 * kSecond), Accounts({account}));
  EXPECT_EQ(record.state, JobState::kFailed);
  EXPECT_EQ(record.reason, "time limit reached");
  EXPECT_EQ(record.ended_us, kNow - 300 * kSecond);
}

TEST(JobVerdict, WhatNobodyKnowsIsLostWithTheEvidence) {
  const JobRecord record = Judged(Started(kNow - 600 * kSecond), Accounts({}));
  EXPECT_EQ(record.state, JobState::kLost);
  EXPECT_NE(record.reason.find("job 7"), std::string::npos) << record.reason;
  EXPECT_NE(record.reason.find("attempt 1"), std::string::npos) << record.reason;
  EXPECT_NE(record.reason.find("10m"), std::string::npos) << record.reason;
  JobEvidence unsent = Sent();
  unsent.handle.reset();
  EXPECT_EQ(Judged(unsent, Accounts({})).state, JobState::kLost);
  EXPECT_NE(Judged(unsent, Accounts({})).reason.find("never answered"), std::string::npos);
}

TEST(JobVerdict, NothingIsConcludedFromAControllerThatDoesNotAnswer) {
  SlurmSight sight = Empty();
  sight.stale = "as of 3m ago: the controller does not answer";
  EXPECT_EQ(Judged(Sent(), sight).state, JobState::kQueued);
  EXPECT_EQ(Judged(Started(kNow - 600 * kSecond), sight).state, JobState::kRunning);
  sight.stale.clear();
  sight.accounting = SlurmSight::Accounting::kAway;
  EXPECT_FALSE(IsFinal(Judged(Started(kNow - 600 * kSecond), sight).state));
}

TEST(JobVerdict, AFailedAttemptThatMayBeRepeatedAtOnceIsNotTheEnd) {
  JobEvidence evidence = Ended(JobState::kFailed, 3);
  evidence.spec.max_restarts = 2;
  evidence.last.report.ended_us = evidence.last.touched_us = kNow - kSecond;
  EXPECT_EQ(Judged(evidence, {}).state, JobState::kRunning);
  const SqueueJob over = EndedRow("FAILED", 1);
  EXPECT_EQ(Judged(evidence, With(over)).state, JobState::kFailed);
  evidence.last.report.ended_us = evidence.last.touched_us = kNow - 10 * kSecond;
  EXPECT_EQ(Judged(evidence, {}).state, JobState::kFailed);
}

TEST(JobVerdict, AnUnknownWordIsKept) {
  const SqueueJob row = Row("DREAMING");
  const JobRecord record = Judged(Sent(), With(row));
  EXPECT_EQ(record.state, JobState::kUnknown);
  EXPECT_EQ(record.raw_state, "DREAMING");
}

TEST(JobVerdict, LogsOfAllAttemptsAndRanksAreNamed) {
  JobEvidence evidence = Started();
  evidence.last.attempt = 2;
  evidence.spec.resources.nodes = 2;
  const SqueueJob row = Row("RUNNING");
  const JobRecord record = Judged(evidence, With(row));
  ASSERT_EQ(record.logs.size(), 4u);
  EXPECT_EQ(record.logs[3].path, evidence.folder + "/attempt-2/rank-1.log");
  EXPECT_EQ(record.restarts, 1);
}

JobEvidence Array(int count) {
  JobEvidence evidence = Sent();
  evidence.spec.array = *ParseArraySpec("0-" + std::to_string(count - 1));
  return evidence;
}

AttemptReport Slot(int slot, JobState state, int64_t ended_us = kNow - 100 * kSecond) {
  AttemptReport report;
  report.attempt = 1;
  report.slot = slot;
  report.touched_us = kNow - 20 * kSecond;
  report.report.started_us = kNow - 400 * kSecond;
  if (state == JobState::kRunning) return report;
  const int exit_status = state == JobState::kSucceeded ? 0 : 4;
  report.report.end = Ending{state, exit_status, 0, -1, ""};
  report.report.ended_us = ended_us;
  return report;
}

SqueueJob TaskRow(int task, std::string state) {
  SqueueJob row = Row(std::move(state));
  row.job_id = 100 + task;
  row.array_job_id = 7;
  row.array_task = task;
  return row;
}

TEST(ArrayVerdict, TasksAreCountedFromRowsAndReports) {
  JobEvidence evidence = Array(6);
  evidence.slots = {Slot(0, JobState::kSucceeded), Slot(1, JobState::kFailed), Slot(2, JobState::kRunning)};
  SqueueJob rest = Row("PENDING", "JobArrayTaskLimit");
  rest.array_job_id = 7;
  rest.array_tasks = "4-5%2";
  const SqueueJob third = TaskRow(3, "RUNNING");
  SlurmSight sight = Empty();
  sight.rows = {&rest, &third};
  const JobRecord record = Judged(evidence, sight);
  EXPECT_EQ(record.tasks, (TaskCounts{6, 2, 2, 1, 1, 0, 0}));
  EXPECT_EQ(record.state, JobState::kRunning);
  EXPECT_EQ(record.attempt, 1);
  EXPECT_EQ(record.started_us, kNow - 400 * kSecond);
}

TEST(ArrayVerdict, TheLatestStartOfATaskCounts) {
  JobEvidence evidence = Array(2);
  evidence.slots = {Slot(0, JobState::kFailed), Slot(1, JobState::kSucceeded), Slot(2, JobState::kSucceeded)};
  const JobRecord record = Judged(evidence, Accounts({}));
  EXPECT_EQ(record.state, JobState::kSucceeded);
  EXPECT_EQ(record.tasks, (TaskCounts{2, 0, 0, 2, 0, 0, 0}));
  EXPECT_EQ(record.exit_status, 0);
}

TEST(ArrayVerdict, OneThatWasSentBackWaits) {
  JobEvidence evidence = Array(2);
  evidence.slots = {Slot(0, JobState::kPreempted), Slot(1, JobState::kSucceeded)};
  evidence.slots[0].report.requeue = "preempted";
  SqueueJob row = TaskRow(0, "PENDING");
  row.restarts = 1;
  const JobRecord record = Judged(evidence, With(row));
  EXPECT_EQ(record.tasks, (TaskCounts{2, 1, 0, 1, 0, 0, 0}));
  EXPECT_EQ(record.state, JobState::kQueued);
}

TEST(ArrayVerdict, AFailedTaskFailsTheArrayWithItsOwnStatus) {
  JobEvidence evidence = Array(3);
  evidence.slots = {Slot(0, JobState::kSucceeded), Slot(1, JobState::kFailed, kNow - 50 * kSecond),
                    Slot(2, JobState::kFailed, kNow - 60 * kSecond)};
  const JobRecord record = Judged(evidence, Empty());
  EXPECT_EQ(record.state, JobState::kFailed);
  EXPECT_EQ(record.exit_status, 4);
  EXPECT_EQ(record.reason, "2 of 3 tasks failed");
  EXPECT_EQ(record.ended_us, kNow - 50 * kSecond);
}

TEST(ArrayVerdict, TasksThatWereCancelledBeforeTheyRanWereNotRun) {
  JobEvidence evidence = Array(4);
  evidence.cancel = CancelWish{kNow - 100 * kSecond, "me", "enough"};
  evidence.slots = {Slot(0, JobState::kSucceeded), Slot(1, JobState::kCancelled)};
  const SqueueJob rest = EndedRow("CANCELLED");
  const JobRecord record = Judged(evidence, With(rest));
  EXPECT_EQ(record.state, JobState::kCancelled);
  EXPECT_EQ(record.reason, "enough");
  EXPECT_EQ(record.tasks, (TaskCounts{4, 0, 0, 1, 1, 0, 2}));
}

TEST(ArrayVerdict, TasksThatNobodyKnowsAreLost) {
  JobEvidence evidence = Array(2);
  evidence.slots = {Slot(0, JobState::kSucceeded)};
  EXPECT_TRUE(JudgeJob(evidence, Empty(), kNow).ask_accounting);
  const JobRecord record = Judged(evidence, Accounts({}));
  EXPECT_EQ(record.state, JobState::kLost);
  EXPECT_EQ(record.tasks, (TaskCounts{2, 0, 0, 1, 0, 1, 0}));
}

TEST(ArrayVerdict, AYoungOneWaits) {
  JobEvidence evidence = Array(3);
  evidence.handle->at_us = kNow;
  const JobRecord record = Judged(evidence, Empty());
  EXPECT_EQ(record.state, JobState::kQueued);
  EXPECT_EQ(record.tasks.queued, 3);
}

TEST(ForeignRecord, ATaskIsCalledByItsArrayAndNumber) {
  const SqueueJob row = TaskRow(3, "RUNNING");
  EXPECT_EQ(ForeignRecord(row, "sky").spec.id, "7_3");
  EXPECT_EQ(ForeignRecord(row, "sky").state, JobState::kRunning);
}

}  // namespace
}  // namespace overcap
