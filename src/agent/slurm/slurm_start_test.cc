// SPDX-License-Identifier: Apache-2.0
#include "agent/slurm/slurm_start.h"

#include <gtest/gtest.h>

namespace overcap {
namespace {

TEST(SlurmStart, APlainJobIsNamedByItsNumber) {
  const auto start = ReadSlurmStart(Variables({"SLURM_JOB_ID=17", "SLURM_JOB_NODELIST=n[1-2]"}));
  ASSERT_TRUE(start);
  EXPECT_EQ(*start, (SlurmStart{17, 0, -1, 0, {"n1", "n2"}, 0}));
  EXPECT_EQ(start->Name(), "17");
  EXPECT_EQ(start->HandleId(), 17);
}

TEST(SlurmStart, ATaskIsNamedByItsArrayBecauseTheLastOneHasTheArraysNumber) {
  const auto start = ReadSlurmStart(
      Variables({"SLURM_JOB_ID=7", "SLURM_ARRAY_JOB_ID=7", "SLURM_ARRAY_TASK_ID=5", "SLURM_RESTART_COUNT=2",
                 "SLURM_JOB_NODELIST=n1", "SLURM_JOB_END_TIME=1700000000"}));
  ASSERT_TRUE(start);
  EXPECT_EQ(*start, (SlurmStart{7, 7, 5, 2, {"n1"}, 1'700'000'000'000'000}));
  EXPECT_EQ(start->Name(), "7_5");
}

TEST(SlurmStart, VariablesThatAreNotSlurmsAreNoStart) {
  EXPECT_FALSE(ReadSlurmStart(Variables({"SLURM_JOB_NODELIST=n1"})));
  EXPECT_FALSE(ReadSlurmStart(Variables({"SLURM_JOB_ID=x"})));
  EXPECT_FALSE(ReadSlurmStart(Variables({"SLURM_JOB_ID=0"})));
  EXPECT_FALSE(ReadSlurmStart(Variables({"SLURM_JOB_ID=1", "SLURM_RESTART_COUNT=-1"})));
  EXPECT_FALSE(ReadSlurmStart(Variables({"SLURM_JOB_ID=1", "SLURM_ARRAY_JOB_ID=1"})));
  EXPECT_FALSE(ReadSlurmStart(Variables({"SLURM_JOB_ID=1", "SLURM_JOB_NODELIST=n[1-"})));
}

TEST(SlurmStart, RanksSeeWhatSlurmHasSetAndNothingElse) {
  const Variables variables({"HOME=/h", "SLURM_JOB_ID=1", "SLURM_CONF=/etc/s", "CUDA_VISIBLE_DEVICES=",
                             "TMPDIR=/scratch/1", "SLURMD_NODENAME=n1", "MYSLURM_X=1"});
  EXPECT_EQ(VariablesOfSlurm(variables),
            (std::vector<std::string>{"SLURM_JOB_ID=1", "SLURM_CONF=/etc/s",
                                      "CUDA_VISIBLE_DEVICES=", "TMPDIR=/scratch/1", "SLURMD_NODENAME=n1"}));
}

}  // namespace
}  // namespace overcap
