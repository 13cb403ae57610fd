// SPDX-License-Identifier: Apache-2.0
#include "control/script_step.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace overcap {
namespace {

ScriptStep Planned(const std::vector<std::string>& words, int tasks = 4) {
  const auto step = PlanScriptStep(words, tasks);
  EXPECT_TRUE(step) << step.error().message;
  return step.value_or(ScriptStep());
}

std::string Refusal(const std::vector<std::string>& words) {
  const auto step = PlanScriptStep(words, 4);
  return step ? "accepted" : step.error().message;
}

TEST(ScriptStep, TheCommandBeginsAtTheFirstWordThatIsNoOption) {
  EXPECT_EQ(Planned({"-u", "python", "-u", "train.py"}).command,
            (std::vector<std::string>{"python", "-u", "train.py"}));
  EXPECT_EQ(Planned({"-n", "2", "--", "-odd"}).command, (std::vector<std::string>{"-odd"}));
  EXPECT_EQ(Planned({"--label", "-c4", "a", "--", "b"}).command, (std::vector<std::string>{"a", "--", "b"}));
}

TEST(ScriptStep, ItHasTheTasksOfTheJobUnlessItAsksForOthers) {
  EXPECT_EQ(Planned({"a"}).tasks, 4);
  EXPECT_EQ(Planned({"-n2", "a"}).tasks, 2);
  EXPECT_EQ(Planned({"--ntasks=3", "a"}).tasks, 3);
  EXPECT_EQ(Planned({"-n2", "--ntasks-per-node=4", "a"}).tasks, 2);
  EXPECT_EQ(Planned({"-N", "1", "--ntasks-per-node", "5", "a"}).tasks, 5);
}

TEST(ScriptStep, WhatConcernsTheAllocationHasNoEffect) {
  const ScriptStep step =
      Planned({"--exact", "--mem=4G", "-c", "2", "--cpu-bind=cores", "--mpi=none", "-K1", "a"});
  EXPECT_EQ(step, (ScriptStep{4, false, "", {}, {"a"}, {}}));
}

TEST(ScriptStep, ThatEachTaskSeesAllGpusIsNoted) {
  EXPECT_EQ(Planned({"--gpus-per-task=1", "a"}).notes,
            (std::vector<std::string>{"srun: '--gpus-per-task=1': each task sees all GPUs of the job"}));
  EXPECT_TRUE(Planned({"--gpus=1", "-n1", "a"}).notes.empty());
}

TEST(ScriptStep, ExportAddsVariables) {
  EXPECT_EQ(Planned({"--export=ALL,A=1,B=", "a"}).env, (std::vector<std::string>{"A=1", "B="}));
  EXPECT_EQ(Refusal({"--export=NONE", "a"}), "srun: '--export=NONE' cannot be had without Slurm");
  EXPECT_EQ(Refusal({"--export=B=2", "a"}), "srun: '--export=B=2' cannot be had without Slurm");
}

TEST(ScriptStep, WhatNeedsSlurmIsRefused) {
  EXPECT_EQ(Refusal({"--pty", "bash"}), "srun: '--pty' cannot be had without Slurm");
  EXPECT_EQ(Refusal({"--mpi=pmix", "a"}), "srun: '--mpi=pmix' cannot be had without Slurm");
  EXPECT_EQ(Refusal({"-N2", "a"}), "srun: '--nodes=2' cannot be had: this machine is one node");
  EXPECT_EQ(Refusal({"-o", "out", "a"}), "srun: '--output=out' cannot be had without Slurm");
  EXPECT_EQ(
      Refusal({"-K0", "a"}),
      "srun: '--kill-on-bad-exit=0' cannot be had without Slurm: when a task fails the others are stopped");
  EXPECT_EQ(Refusal({"--version"}), "srun: '--version' cannot be had without Slurm");
  EXPECT_EQ(Refusal({"-n", "0", "a"}), "srun: '--ntasks=0' is no number of tasks");
  EXPECT_EQ(Refusal({"--no-such", "a"}), "srun: '--no-such' is no option of srun");
  EXPECT_EQ(Refusal({"-n"}), "srun: '--ntasks' has no value");
  EXPECT_EQ(Refusal({}), "srun: no command was given");
}

TEST(ScriptStep, OnlyTheTwoNamesAreProgramsOfScripts) {
  EXPECT_NE(FindScriptProgram("/jobs/x/tools/srun"), nullptr);
  EXPECT_NE(FindScriptProgram("scontrol"), nullptr);
  EXPECT_EQ(FindScriptProgram("overcap"), nullptr);
  EXPECT_EQ(FindScriptProgram(""), nullptr);
}

}  // namespace
}  // namespace overcap
