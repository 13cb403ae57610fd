// SPDX-License-Identifier: Apache-2.0
#include "agent/slurm/slurm_facts.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace overcap {
namespace {

TEST(SlurmJobFacts, ARunningJob) {
  EXPECT_EQ(ParseSlurmFacts("RUNNING|0|1794743888|10:00|N/A|\n"),
            (SlurmJobFacts{"RUNNING", 0, false, 1'794'743'888'000'000, 600}));
}

TEST(SlurmJobFacts, AJobThatMakesRoom) {
  const auto facts = ParseSlurmFacts("RUNNING|1|1794743888|1-02:00:00|1794743900|\n");
  EXPECT_EQ(facts, (SlurmJobFacts{"RUNNING", 1, true, 1'794'743'888'000'000, 93'600}));
}

TEST(SlurmJobFacts, AJobThatIsRequeuedHasNoTimesYet) {
  EXPECT_EQ(ParseSlurmFacts("COMPLETING|1|N/A|UNLIMITED|N/A|\n"),
            (SlurmJobFacts{"COMPLETING", 1, false, 0, 0}));
}

TEST(SlurmJobFacts, WarningsAreSkipped) {
  EXPECT_EQ(ParseSlurmFacts("squeue: warning: odd|\nRUNNING|0|5|1:00|N/A|\n"),
            (SlurmJobFacts{"RUNNING", 0, false, 5'000'000, 60}));
}

TEST(SlurmJobFacts, AJobThatIsNotKnownHasNone) {
  EXPECT_EQ(ParseSlurmFacts(""), std::nullopt);
  EXPECT_EQ(ParseSlurmFacts("slurm_load_jobs error: Invalid job id specified\n"), std::nullopt);
  EXPECT_EQ(ParseSlurmFacts("RUNNING|x|1|1|1|\n"), std::nullopt);
}

RC_GTEST_PROP(SlurmJobFacts, AnyTextIsRead, (const std::string& text)) {
  (void)ParseSlurmFacts(text);
  (void)ParseSlurmFacts("RUNNING|0|" + text);
  (void)KillWaitSeconds(text);
}

TEST(SlurmJobFacts, ToolsAreNotToldOtherQuestions) {
  EXPECT_EQ(SlurmToolVariables(Variables({"PATH=/bin", "SQUEUE_STATES=PD", "SLURM_CONF=/c", "SCONTROL_ALL=1",
                                          "SLURM_TIME_FORMAT=relative"})),
            (std::vector<std::string>{"PATH=/bin", "SLURM_CONF=/c", "SLURM_TIME_FORMAT=%s"}));
}

TEST(SlurmJobFacts, HowLongSlurmWaitsStandsInItsConfiguration) {
  EXPECT_EQ(KillWaitSeconds("ClusterName=x\nKillWait=7\n"), 7);
  EXPECT_EQ(KillWaitSeconds("  killwait = 8  # seconds\n"), 8);
  EXPECT_EQ(KillWaitSeconds("#KillWait=7\nUnkillableStepTimeout=60\n"), 30);
  EXPECT_EQ(KillWaitSeconds("KillWait=soon"), 30);
  EXPECT_EQ(KillWaitSeconds(""), 30);
}

}  // namespace
}  // namespace overcap
