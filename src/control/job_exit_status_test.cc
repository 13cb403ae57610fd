// SPDX-License-Identifier: Apache-2.0
#include "control/job_exit_status.h"

#include <gtest/gtest.h>

namespace overcap {
namespace {

JobRecord Record(JobState state, int exit_status, int signal = 0) {
  JobRecord record;
  record.state = state;
  record.exit_status = exit_status;
  record.signal = signal;
  return record;
}

TEST(JobExitStatus, IsTheJobsOwn) {
  EXPECT_EQ(JobExitStatus(Record(JobState::kSucceeded, 0)), 0);
  EXPECT_EQ(JobExitStatus(Record(JobState::kFailed, 7)), 7);
  EXPECT_EQ(JobExitStatus(Record(JobState::kFailed, 137, 9)), 137);
}

TEST(JobExitStatus, AFailureIsNeverZero) {
  EXPECT_EQ(JobExitStatus(Record(JobState::kFailed, -1)), 1);
  EXPECT_EQ(JobExitStatus(Record(JobState::kFailed, 0)), 1);
}

TEST(JobExitStatus, CancelledAndLostHaveTheirOwn) {
  EXPECT_EQ(JobExitStatus(Record(JobState::kCancelled, 143, 15)), kStatusCancelled);
  EXPECT_EQ(JobExitStatus(Record(JobState::kLost, -1)), kStatusLost);
}

TEST(JobExitStatus, OfSeveralTheFirstThatFailed) {
  EXPECT_EQ(JobsExitStatus({Record(JobState::kSucceeded, 0), Record(JobState::kFailed, 4),
                            Record(JobState::kFailed, 5)}),
            4);
}

TEST(JobExitStatus, SignalsAreNamed) {
  EXPECT_EQ(EndingText(Record(JobState::kFailed, 137, 9)), "signal 9 (SIGKILL)");
  EXPECT_EQ(EndingText(Record(JobState::kFailed, 3)), "exit status 3");
  EXPECT_EQ(EndingText(Record(JobState::kRunning, -1)), "");
}

}  // namespace
}  // namespace overcap
