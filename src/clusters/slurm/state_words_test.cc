// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/state_words.h"

#include <gtest/gtest.h>

namespace overcap {
namespace {

TEST(SlurmStateWords, EveryWordAndItsCodeMeanTheSame) {
  const struct {
    const char *word, *code;
    JobState state;
    bool ended;
  } rows[] = {
      {"PENDING", "PD", JobState::kQueued, false},       {"RUNNING", "R", JobState::kRunning, false},
      {"SUSPENDED", "S", JobState::kRunning, false},     {"COMPLETING", "CG", JobState::kRunning, false},
      {"COMPLETED", "CD", JobState::kSucceeded, true},   {"CANCELLED", "CA", JobState::kCancelled, true},
      {"FAILED", "F", JobState::kFailed, true},          {"TIMEOUT", "TO", JobState::kFailed, true},
      {"PREEMPTED", "PR", JobState::kPreempted, true},   {"NODE_FAIL", "NF", JobState::kLost, true},
      {"BOOT_FAIL", "BF", JobState::kLost, true},        {"DEADLINE", "DL", JobState::kFailed, true},
      {"OUT_OF_MEMORY", "OOM", JobState::kFailed, true}, {"REQUEUED", "RQ", JobState::kQueued, false},
      {"REQUEUE_HOLD", "RH", JobState::kHeld, false},    {"REQUEUE_FED", "RF", JobState::kQueued, false},
      {"SPECIAL_EXIT", "SE", JobState::kHeld, false},    {"RESIZING", "RS", JobState::kRunning, false},
      {"REVOKED", "RV", JobState::kCancelled, true},     {"SIGNALING", "SI", JobState::kRunning, false},
      {"STAGE_OUT", "SO", JobState::kRunning, false},    {"STOPPED", "ST", JobState::kRunning, false},
      {"CONFIGURING", "CF", JobState::kQueued, false},   {"RESV_DEL_HOLD", "RD", JobState::kHeld, false}};
  for (const auto& row : rows) {
    for (const char* text : {row.word, row.code}) {
      const SlurmState state = ReadSlurmState(text);
      EXPECT_EQ(state.state, row.state) << text;
      EXPECT_EQ(state.ended, row.ended) << text;
      EXPECT_EQ(state.word, row.word);
    }
  }
}

TEST(SlurmStateWords, AnUnknownWordIsKept) {
  const SlurmState state = ReadSlurmState("HIBERNATING");
  EXPECT_EQ(state.state, JobState::kUnknown);
  EXPECT_EQ(state.word, "HIBERNATING");
  EXPECT_FALSE(state.ended);
}

TEST(SlurmStateWords, WhoCancelledIsToldWhereSlurmKnows) {
  EXPECT_EQ(ReadSlurmState("CANCELLED by 1000").reason, "cancelled by user id 1000");
  EXPECT_EQ(ReadSlurmState("CANCELLED by 1000").word, "CANCELLED");
  EXPECT_EQ(ReadSlurmState("CANCELLED").reason, "");
}

TEST(SlurmStateWords, AWordCutByAColumnIsReadWhenOnlyOneCanBeMeant) {
  EXPECT_EQ(ReadSlurmState("OUT_OF_ME+").word, "OUT_OF_MEMORY");
  EXPECT_EQ(ReadSlurmState("CANCELLED+").state, JobState::kCancelled);
  EXPECT_EQ(ReadSlurmState("REQUEUE+").state, JobState::kUnknown);
}

TEST(SlurmStateWords, AFlagBehindTheStateCountsWhenItIsKnown) {
  EXPECT_EQ(ReadSlurmState("FAILED,COMPLETING").word, "COMPLETING");
  EXPECT_EQ(ReadSlurmState("RUNNING,UPDATE_DB").word, "RUNNING");
}

TEST(SlurmStateWords, APendingJobIsHeldWhenItsReasonSaysSo) {
  EXPECT_EQ(ReadSlurmState("PENDING", "JobHeldUser").state, JobState::kHeld);
  EXPECT_EQ(ReadSlurmState("PENDING", "Resources").state, JobState::kQueued);
  EXPECT_EQ(ReadSlurmState("PENDING", "Dependency").reason, "waits for other jobs to end");
  EXPECT_EQ(ReadSlurmState("RUNNING", "None").reason, "");
}

TEST(SlurmStateWords, ExitCodesComeInTwoForms) {
  EXPECT_EQ(ReadSlurmExit("3:0"), (SlurmExit{3, 0}));
  EXPECT_EQ(ReadSlurmExit("0:9"), (SlurmExit{0, 9}));
  EXPECT_EQ(ReadSlurmExit("768"), (SlurmExit{3, 0}));
  EXPECT_EQ(ReadSlurmExit("15"), (SlurmExit{0, 15}));
  EXPECT_EQ(ReadSlurmExit("999:-4"), (SlurmExit{0, 0}));
  EXPECT_EQ(ReadSlurmExit(""), (SlurmExit{0, 0}));
}

TEST(SlurmStateWords, AnEndingHasTheStatusThatAShellWouldShow) {
  EXPECT_EQ(ReadSlurmEnding("COMPLETED", {0, 0}, "None").exit_status, 0);
  EXPECT_EQ(ReadSlurmEnding("FAILED", {3, 0}, "NonZeroExitCode"), (Ending{JobState::kFailed, 3, 0, -1, ""}));
  EXPECT_EQ(ReadSlurmEnding("FAILED", {0, 9}, "JobLaunchFailure"),
            (Ending{JobState::kFailed, 137, 9, -1, "killed by signal 9"}));
  EXPECT_EQ(ReadSlurmEnding("FAILED", {0, 0}, "JobLaunchFailure"),
            (Ending{JobState::kFailed, -1, 0, -1, "could not be started on its nodes"}));
  EXPECT_EQ(ReadSlurmEnding("FAILED", {3, 0}, "QOSMaxGRESPerUser").reason, "");
  EXPECT_EQ(ReadSlurmEnding("TIMEOUT", {0, 0}, "TimeLimit"),
            (Ending{JobState::kFailed, -1, 0, -1, "time limit reached"}));
  EXPECT_EQ(ReadSlurmEnding("NODE_FAIL", {0, 0}, "NodeDown"),
            (Ending{JobState::kLost, -1, 0, -1, "one of its nodes failed"}));
  EXPECT_EQ(ReadSlurmEnding("CANCELLED", {0, 0}, "DependencyNeverSatisfied").reason,
            "a job that it waits for did not end as required");
  EXPECT_EQ(ReadSlurmEnding("CANCELLED", {0, 0}, "Priority").reason, "");
}

}  // namespace
}  // namespace overcap
