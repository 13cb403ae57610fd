// SPDX-License-Identifier: Apache-2.0
#include "control/exec.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

namespace overcap {
namespace {

class ExecTest : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/overcap_exec_XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    record_.dir = folder;
    record_.spec.id = "ann_1_00000001";
    record_.spec.snapshot = std::string(64, 'a');
    record_.spec.workdir = "sub";
    record_.state = JobState::kRunning;
    record_.attempt = 2;
    std::filesystem::create_directories(record_.dir + "/attempt-2/code/sub");
    std::ofstream(record_.dir + "/attempt-2/environment")
        << std::string("A=1\0PATH=/usr/bin:/bin\0TERM=dumb\0", 33);
  }
  void TearDown() override { std::filesystem::remove_all(record_.dir); }
  JobRecord record_;
};

TEST_F(ExecTest, RunsInTheFolderAndEnvironmentOfTheLastAttempt) {
  const auto plan = PlanExec(record_, {"true", "x"}, "xterm");
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->folder, record_.dir + "/attempt-2/code/sub");
  EXPECT_EQ(plan->environment, (std::vector<std::string>{"A=1", "PATH=/usr/bin:/bin", "TERM=xterm"}));
  std::ofstream(record_.dir + "/attempt-2/environment", std::ios::app)
      << std::string("CUDA_VISIBLE_DEVICES=0,1\0OVERCAP_GPU_INDICES=2,3\0", 49);
  const auto variables = RankVariables(record_.spec, record_.dir + "/attempt-2");
  ASSERT_TRUE(variables);
  EXPECT_EQ(std::count(variables->begin(), variables->end(), "CUDA_VISIBLE_DEVICES=2,3"), 1)
      << "outside of the job's control group the GPUs have the machine's numbers";
  EXPECT_EQ(plan->argv, (std::vector<std::string>{"true", "x"}));
  EXPECT_TRUE(plan->program.ends_with("/true"));
}

TEST_F(ExecTest, AJobThatDoesNotRunIsAConflict) {
  record_.state = JobState::kQueued;
  EXPECT_EQ(PlanExec(record_, {"true"}, "").error().code, ErrorCode::kConflict);
}

TEST_F(ExecTest, AMissingCommandIsTheUsersToChange) {
  EXPECT_EQ(PlanExec(record_, {"no-such-program-here"}, "").error().code, ErrorCode::kUsage);
}

}  // namespace
}  // namespace overcap
