// SPDX-License-Identifier: Apache-2.0
#include "control/submitter_environment.h"

#include <gtest/gtest.h>

namespace overcap {
namespace {

using Variables = std::vector<std::string>;

TEST(SubmitterEnvironment, KeepsWhatProgramsNeed) {
  EXPECT_EQ(*SubmitterEnvironment({"PATH=/bin", "HOME=/home/a", "WANDB_KEY=x=y"}, {}),
            (Variables{"HOME=/home/a", "PATH=/bin", "WANDB_KEY=x=y"}));
}

TEST(SubmitterEnvironment, LeavesTerminalSessionAndOtherJobsBehind) {
  EXPECT_EQ(
      *SubmitterEnvironment({"SHLVL=2", "_=/bin/x", "PWD=/x", "SSH_TTY=/dev/pts/1", "TMUX_PANE=1", "RANK=3",
                             "OVERCAP_JOB_ID=a", "MASTER_PORT=1", "CUDA_VISIBLE_DEVICES=7", "TERM=xterm"},
                            {}),
      Variables{"TERM=xterm"});
}

TEST(SubmitterEnvironment, KeepsTheUsersThreadsAndNotThoseOfTheRankThatSubmits) {
  EXPECT_EQ(*SubmitterEnvironment({"OMP_NUM_THREADS=4"}, {}), Variables{"OMP_NUM_THREADS=4"});
  EXPECT_EQ(*SubmitterEnvironment({"OMP_NUM_THREADS=4", "OVERCAP_OMP_NUM_THREADS=4"}, {}), Variables());
  EXPECT_EQ(*SubmitterEnvironment({"OMP_NUM_THREADS=1", "OVERCAP_OMP_NUM_THREADS=4"}, {}),
            Variables{"OMP_NUM_THREADS=1"});
}

TEST(SubmitterEnvironment, KeepsWhereOvercapLooks) {
  EXPECT_FALSE(StaysWithSubmitter("OVERCAP_HOME"));
}

TEST(SubmitterEnvironment, GivenOnesWinAlsoOverWhatStaysBehind) {
  EXPECT_EQ(*SubmitterEnvironment({"A=1", "RANK=3"}, {"A=2", "RANK=9", "B=", "A=3"}),
            (Variables{"A=3", "B=", "RANK=9"}));
}

TEST(SubmitterEnvironment, AGivenOneWithoutValueIsRefusedWithoutShowingIt) {
  for (const char* given : {"SECRET", "=x", ""}) {
    const auto variables = SubmitterEnvironment({}, {given});
    ASSERT_FALSE(variables) << given;
    EXPECT_EQ(variables.error().code, ErrorCode::kUsage);
    EXPECT_EQ(variables.error().message.find("SECRET"), std::string::npos);
  }
}

TEST(SubmitterEnvironment, TheBlobIsSeparatedByNul) {
  EXPECT_EQ(EnvironmentBlob({"A=1", "B=2"}), std::string("A=1\0B=2", 7));
}

}  // namespace
}  // namespace overcap
