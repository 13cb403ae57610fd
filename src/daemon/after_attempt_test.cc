// SPDX-License-Identifier: Apache-2.0
#include "daemon/after_attempt.h"

#include <gtest/gtest.h>

namespace overcap {
namespace {

Ending EndedAs(JobState state, int exit_status) {
  Ending ending;
  ending.state = state;
  ending.exit_status = exit_status;
  ending.reason = "why";
  return ending;
}

Job Array(const std::string& spec) {
  Job job;
  job.spec.array = *ParseArraySpec(spec);
  job.array = std::make_unique<ArrayProgress>();
  return job;
}

TEST(AfterAttemptTest, ASuccessEndsTheJobAlsoWhenACancelCameTooLate) {
  Job job;
  job.progress.cancel_requested = true;
  const AfterAttempt after = DecideAfterAttempt(job, EndedAs(JobState::kSucceeded, 0), 0);
  EXPECT_EQ(after.step, NextStep::kEnd);
  EXPECT_EQ(after.ending.state, JobState::kSucceeded);
}

TEST(AfterAttemptTest, ACancelledJobIsNeverStartedAgain) {
  Job job;
  job.spec.requeue = true;
  job.spec.max_restarts = 9;
  job.progress.cancel_requested = true;
  for (const JobState state : {JobState::kFailed, JobState::kLost, JobState::kQueued, JobState::kCancelled}) {
    const AfterAttempt after = DecideAfterAttempt(job, EndedAs(state, 143), 0);
    EXPECT_EQ(after.step, NextStep::kEnd);
    EXPECT_EQ(after.ending.state, JobState::kCancelled);
  }
}

TEST(AfterAttemptTest, AFailureIsRestartedAsOftenAsAsked) {
  Job job;
  job.spec.max_restarts = 2;
  job.progress.restarts = 2;
  EXPECT_EQ(DecideAfterAttempt(job, EndedAs(JobState::kFailed, 3), 0).step, NextStep::kRequeue);
  job.progress.restarts = 3;
  EXPECT_EQ(DecideAfterAttempt(job, EndedAs(JobState::kFailed, 3), 0).ending.exit_status, 3);
}

TEST(AfterAttemptTest, ALostAgentEndsTheJobUnlessItsUserAskedForRequeue) {
  Job job;
  job.progress.losses = 1;
  EXPECT_EQ(DecideAfterAttempt(job, EndedAs(JobState::kLost, -1), 0).ending.state, JobState::kLost);
  job.spec.requeue = true;
  EXPECT_EQ(DecideAfterAttempt(job, EndedAs(JobState::kLost, -1), 0).step, NextStep::kRequeue);
  job.progress.losses = kMostLosses + 1;
  EXPECT_EQ(DecideAfterAttempt(job, EndedAs(JobState::kLost, -1), 0).step, NextStep::kEnd);
}

TEST(AfterAttemptTest, WhatNeverRanIsStartedAgainButNotForEver) {
  const Job job;
  EXPECT_EQ(DecideAfterAttempt(job, EndedAs(JobState::kQueued, -1), 1).step, NextStep::kRequeue);
  const AfterAttempt after = DecideAfterAttempt(job, EndedAs(JobState::kQueued, -1), kMostFailedStarts);
  EXPECT_EQ(after.step, NextStep::kEnd);
  EXPECT_EQ(after.ending.state, JobState::kFailed);
}

TEST(AfterAttemptTest, AnArrayGoesOnWhileALaneRuns) {
  Job job = Array("0-9");
  job.slots.emplace_back();
  EXPECT_EQ(DecideAfterAttempt(job, EndedAs(JobState::kSucceeded, 0), 0).step, NextStep::kGoOn);
}

TEST(AfterAttemptTest, AnArrayEndsByTheResultsOfItsTasks) {
  Job job = Array("0-2");
  job.array->drained = true;
  job.array->done.succeeded = 3;
  EXPECT_EQ(DecideAfterAttempt(job, EndedAs(JobState::kSucceeded, 0), 0).ending.state, JobState::kSucceeded);
  job.array->done = {2, {{1, 7}}, {}};
  const Ending failed = DecideAfterAttempt(job, EndedAs(JobState::kSucceeded, 0), 0).ending;
  EXPECT_EQ(failed.state, JobState::kFailed);
  EXPECT_EQ(failed.exit_status, 7);
  EXPECT_EQ(failed.reason, "1 of 3 tasks failed");
  job.array->done = {2, {}, {2}};
  EXPECT_EQ(DecideAfterAttempt(job, EndedAs(JobState::kSucceeded, 0), 0).ending.state, JobState::kLost);
}

TEST(AfterAttemptTest, AnArrayWhoseAgentCannotRunEndsAndDoesNotSpin) {
  Job job = Array("0-2");
  job.array->broken = EndedAs(JobState::kFailed, 126);
  const AfterAttempt after = DecideAfterAttempt(job, EndedAs(JobState::kFailed, 126), 0);
  EXPECT_EQ(after.step, NextStep::kEnd);
  EXPECT_EQ(after.ending.exit_status, 126);
  job.array->broken.reset();
  EXPECT_EQ(DecideAfterAttempt(job, EndedAs(JobState::kLost, -1), kMostFailedStarts).step, NextStep::kEnd);
}

TEST(AfterAttemptTest, AnArrayWithTasksLeftIsQueuedAgain) {
  Job job = Array("0-2");
  EXPECT_EQ(DecideAfterAttempt(job, EndedAs(JobState::kLost, -1), 0).step, NextStep::kRequeue);
  job.array->drained = true;
  job.array->retry = {1};
  EXPECT_EQ(DecideAfterAttempt(job, EndedAs(JobState::kLost, -1), 0).step, NextStep::kRequeue);
}

}  // namespace
}  // namespace overcap
