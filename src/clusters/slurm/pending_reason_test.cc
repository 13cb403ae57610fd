// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/pending_reason.h"

#include <fstream>
#include <gtest/gtest.h>

namespace overcap {
namespace {

TEST(PendingReason, CommonReasonsAreSaidInPlainWords) {
  EXPECT_EQ(ReadPendingReason("Priority").text, "jobs with a higher priority are ahead");
  EXPECT_EQ(ReadPendingReason("(BeginTime)").text, "not before its begin time");
  EXPECT_EQ(ReadPendingReason("JobHeldUser").kind, ReasonKind::kHeld);
  EXPECT_EQ(ReadPendingReason("DependencyNeverSatisfied").kind, ReasonKind::kNever);
  EXPECT_EQ(ReadPendingReason("None").kind, ReasonKind::kNone);
}

TEST(PendingReason, LimitsAreMadeOutOfTheirParts) {
  EXPECT_EQ(ReadPendingReason("AssocGrpGRES").text,
            "the cap of the account is in use: GPUs of all its jobs together");
  EXPECT_EQ(ReadPendingReason("QOSMaxGRESPerUser").text, "the limit of the QOS is in use: GPUs per user");
  EXPECT_EQ(ReadPendingReason("QOSMaxJobsPerUserLimit").text,
            "the limit of the QOS is in use: running jobs per user");
  EXPECT_EQ(ReadPendingReason("AssocGrpCPUMinutesLimit").text,
            "the cap of the account is in use: CPUs, counted in minutes of all its jobs together");
  EXPECT_EQ(ReadPendingReason("QOSMinGRES").text, "asks for fewer GPUs than the QOS requires");
}

TEST(PendingReason, AJobThatIsTooBigForALimitOnOneJobNeverStarts) {
  const PendingReason reason = ReadPendingReason("QOSMaxWallDurationPerJobLimit");
  EXPECT_EQ(reason.kind, ReasonKind::kNever);
  EXPECT_EQ(reason.text, "asks for more than the QOS allows: run time per job");
}

TEST(PendingReason, NodesThatAreAwayAreNamed) {
  const PendingReason reason = ReadPendingReason("ReqNodeNotAvail, UnavailableNodes:n[1-2]");
  EXPECT_EQ(reason.kind, ReasonKind::kNodes);
  EXPECT_EQ(reason.word, "ReqNodeNotAvail");
  EXPECT_EQ(reason.text, "a node that it needs is down, drained or reserved (UnavailableNodes:n[1-2])");
}

TEST(PendingReason, AWordThatNobodyKnowsIsShownAsItIs) {
  const PendingReason reason = ReadPendingReason("FluxCapacitor");
  EXPECT_EQ(reason.kind, ReasonKind::kUnknown);
  EXPECT_EQ(reason.text, "FluxCapacitor");
}

TEST(PendingReason, EveryReasonOfSlurm22IsKnown) {
  std::ifstream words(OVERCAP_TEST_DATA "/slurm-22.05.8/reasons.txt");
  int count = 0;
  for (std::string word; std::getline(words, word); ++count) {
    EXPECT_NE(ReadPendingReason(word).kind, ReasonKind::kUnknown) << word;
  }
  EXPECT_GT(count, 150);
}

}  // namespace
}  // namespace overcap
