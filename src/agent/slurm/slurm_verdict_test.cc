// SPDX-License-Identifier: Apache-2.0
#include "agent/slurm/slurm_verdict.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace overcap {
namespace {

constexpr int64_t kSecond = 1'000'000, kBegin = 1'000'000 * kSecond;
const Ending kStopped{JobState::kCancelled, 143, 15, -1, ""};
const Ending kDone{JobState::kSucceeded, 0, 0, -1, ""};
const Ending kFailed{JobState::kFailed, 7, 0, 3, ""};
const Ending kLost{JobState::kLost, -1, 0, -1, "node 'n2' failed: x"};
const SlurmJobFacts kRunning{"RUNNING", 0, false, kBegin, 600};
const SlurmJobFacts kPreempting{"RUNNING", 0, true, kBegin, 600};
const SlurmJobFacts kRequeued{"COMPLETING", 1, false, 0, 600};
const SlurmJobFacts kCompleting{"COMPLETING", 0, false, kBegin, 600};

class SlurmVerdictTest : public testing::Test {
 protected:
  SlurmVerdictTest() {
    seen_.begin_us = kBegin;
    seen_.now_us = kBegin + 100 * kSecond;
    spec_.resources.time_seconds = 600;
  }
  // "preempted: preempted; again: preempted, ask".
  std::string Judge(const Ending& ranks, std::optional<SlurmJobFacts> facts = std::nullopt) {
    seen_.ranks = ranks;
    seen_.facts = facts;
    const SlurmVerdict verdict = JudgeEnd(spec_, seen_);
    std::string text = StrCat(JobStateName(verdict.ending.state), " ", verdict.ending.exit_status);
    if (!verdict.ending.reason.empty()) text += ": " + verdict.ending.reason;
    if (!verdict.requeue.empty()) text += "; again: " + verdict.requeue;
    return verdict.ask ? text + ", ask" : text;
  }
  JobSpec spec_;
  StopEvidence seen_;
};

TEST_F(SlurmVerdictTest, RanksThatEndByThemselvesSayHowItEnded) {
  EXPECT_EQ(Judge(kDone), "succeeded 0");
  EXPECT_EQ(Judge(kFailed), "failed 7");
  spec_.requeue = spec_.requeue_on_timeout = true;
  EXPECT_EQ(Judge(kDone, kRunning), "succeeded 0");
  EXPECT_EQ(Judge(kFailed, kRunning), "failed 7");
}

TEST_F(SlurmVerdictTest, AJobThatSlurmHasSentBackIsNotSentBackAgain) {
  for (const bool requeue : {false, true}) {
    spec_.requeue = requeue;
    EXPECT_EQ(Judge(kStopped, kRequeued), "preempted 143: preempted; again: preempted");
    EXPECT_EQ(Judge(kFailed, kRequeued), "preempted 7: preempted; again: preempted");
  }
}

TEST_F(SlurmVerdictTest, AStartThatALaterOneHasReplacedAsksForNone) {
  spec_.requeue = seen_.replaced = true;
  EXPECT_EQ(Judge(kStopped), "preempted 143: preempted; again: preempted");
  EXPECT_EQ(Judge(kDone), "preempted 0: preempted; again: preempted");
}

TEST_F(SlurmVerdictTest, APreemptedJobThatSlurmWouldForgetIsSentBack) {
  EXPECT_EQ(Judge(kStopped, kPreempting), "preempted 143: preempted");
  spec_.requeue = true;
  EXPECT_EQ(Judge(kStopped, kPreempting), "preempted 143: preempted; again: preempted, ask");
  EXPECT_EQ(Judge(kFailed, kPreempting), "preempted 7: preempted; again: preempted, ask");
  EXPECT_EQ(Judge(kDone, kPreempting), "preempted 0: preempted; again: preempted, ask");
}

TEST_F(SlurmVerdictTest, ATermThatNobodyExplainsIsAPreemption) {
  EXPECT_EQ(Judge(kStopped, kRunning), "preempted 143: preempted");
  EXPECT_EQ(Judge(kStopped), "preempted 143: preempted");
  spec_.requeue = true;
  EXPECT_EQ(Judge(kStopped), "preempted 143: preempted; again: preempted, ask");
}

TEST_F(SlurmVerdictTest, WhoWantsItToEndGetsThat) {
  spec_.requeue = spec_.requeue_on_timeout = true;
  seen_.cancel = "cancelled by ada";
  EXPECT_EQ(Judge(kStopped, kPreempting), "cancelled 143: cancelled by ada");
  EXPECT_EQ(Judge(kStopped), "cancelled 143: cancelled by ada");
  EXPECT_EQ(Judge(kDone), "succeeded 0");
  seen_.warned = true;
  EXPECT_EQ(Judge(kFailed, kPreempting), "failed 7");
}

TEST_F(SlurmVerdictTest, ARankThatDiesOfTheSignalBeforeTheAgentSeesItHasNotFailed) {
  const Ending died{JobState::kFailed, 143, 15, 0, ""};
  EXPECT_EQ(Judge(died, kCompleting), "failed 143");
  seen_.told = true;
  EXPECT_EQ(Judge(died, kCompleting), "cancelled 143: cancelled in Slurm");
  EXPECT_EQ(Judge(died, kPreempting), "preempted 143: preempted");
  EXPECT_EQ(Judge(kFailed, kCompleting), "failed 7");
  seen_.cancel = "cancelled by ada";
  EXPECT_EQ(Judge(died), "cancelled 143: cancelled by ada");
}

TEST_F(SlurmVerdictTest, AJobThatSlurmEndsForNoOtherReasonWasCancelled) {
  spec_.requeue = true;
  EXPECT_EQ(Judge(kStopped, kCompleting), "cancelled 143: cancelled in Slurm");
}

TEST_F(SlurmVerdictTest, TheTimeLimitIsKnownByTheClock) {
  seen_.now_us = kBegin + 601 * kSecond;
  EXPECT_EQ(Judge(kStopped, kCompleting), "failed 124: time limit of 10m reached");
  EXPECT_EQ(Judge(kStopped), "failed 124: time limit of 10m reached");
  spec_.requeue = true;
  EXPECT_EQ(Judge(kStopped, kCompleting), "failed 124: time limit of 10m reached");
  spec_.requeue_on_timeout = true;
  EXPECT_EQ(Judge(kStopped, kCompleting), "failed 124: time limit of 10m reached; again: time limit, ask");
  spec_.resources.time_seconds = 0;  // the partition's
  EXPECT_EQ(Judge(kStopped, kCompleting), "failed 124: time limit of 10m reached; again: time limit, ask");
}

TEST_F(SlurmVerdictTest, WhatTheAgentEndsBeforeTheLimitIsOutOfTime) {
  spec_.requeue_on_timeout = true;
  seen_.before_limit = true;
  EXPECT_EQ(Judge(kStopped, kRunning), "failed 124: time limit of 10m reached; again: time limit, ask");
}

TEST_F(SlurmVerdictTest, AWarnedProgramIsDoneOnlyWithStatus0) {
  seen_.warned = true;
  EXPECT_EQ(Judge(kFailed, kRunning), "failed 7");
  spec_.requeue_on_timeout = true;
  EXPECT_EQ(Judge(kDone, kRunning), "succeeded 0");
  EXPECT_EQ(Judge(kFailed, kRunning), "failed 124: time limit of 10m reached; again: time limit, ask");
}

TEST_F(SlurmVerdictTest, AFailedNodeIsReplacedWhereTheJobMayBeRepeated) {
  EXPECT_EQ(Judge(kLost, kRunning), "lost -1: node 'n2' failed: x");
  EXPECT_EQ(Judge(kLost, kRequeued), "lost -1: node 'n2' failed: x; again: node failed");
  spec_.requeue = true;
  EXPECT_EQ(Judge(kLost, kRunning), "lost -1: node 'n2' failed: x; again: node failed, ask");
}

TEST_F(SlurmVerdictTest, SlurmIsAskedOnlyWhereItsAnswerCounts) {
  const auto wants = [&](const Ending& ranks) {
    seen_.ranks = ranks;
    return WantsFacts(spec_, seen_);
  };
  EXPECT_FALSE(wants(kDone));
  EXPECT_FALSE(wants(kFailed));
  EXPECT_TRUE(wants(kStopped));
  spec_.requeue = true;
  EXPECT_FALSE(wants(kDone));
  EXPECT_TRUE(wants(kFailed));
  spec_.resources.nodes = 2;
  EXPECT_TRUE(wants(kDone));
  seen_.cancel = "";
  EXPECT_FALSE(wants(kStopped));
}

TEST_F(SlurmVerdictTest, RanksAreEndedJustBeforeTheLimit) {
  const int64_t grace = 20 * kSecond;
  EXPECT_EQ(StopBeforeLimitUs(spec_, kRunning, 0, grace), 0);
  spec_.requeue_on_timeout = true;
  EXPECT_EQ(StopBeforeLimitUs(spec_, std::nullopt, 0, grace), 0);
  EXPECT_EQ(StopBeforeLimitUs(spec_, kRunning, 0, grace), kBegin + (600 - 20 - 3) * kSecond);
  EXPECT_EQ(StopBeforeLimitUs(spec_, std::nullopt, 500 * kSecond, grace), (500 - 20 - 3) * kSecond);
  spec_.warn_seconds = 10;  // half of it is the ranks' own
  EXPECT_EQ(StopBeforeLimitUs(spec_, kRunning, 0, grace), kBegin + (600 - 5 - 3) * kSecond);
}

AgentReport Short(const std::string& why, int64_t seconds) {
  AgentReport report;
  report.requeue = why;
  report.started = true;
  report.started_us = 5;
  report.ended_us = 5 + seconds * kSecond;
  return report;
}

TEST_F(SlurmVerdictTest, TheThirdSoonEndInTheSameWayIsTheLast) {
  const std::vector<AgentReport> two = {Short("preempted", 10), Short("preempted", 10)};
  EXPECT_TRUE(EndsTooSoon(two, "preempted", 30 * kSecond));
  EXPECT_FALSE(EndsTooSoon(two, "preempted", 60 * kSecond));
  EXPECT_FALSE(EndsTooSoon(two, "time limit", 30 * kSecond));
  EXPECT_FALSE(EndsTooSoon({two[0]}, "preempted", 30 * kSecond));
  EXPECT_FALSE(EndsTooSoon({two[0], Short("preempted", 61)}, "preempted", 30 * kSecond));
  EXPECT_FALSE(EndsTooSoon({two[0], Short("", 1)}, "preempted", 30 * kSecond));
}

}  // namespace
}  // namespace overcap
