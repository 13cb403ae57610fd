// SPDX-License-Identifier: Apache-2.0
// The agent under Slurm, with Slurm's variables and without a Slurm.
#include "agent/slurm_agent.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include "agent/testing/agent_world.h"
#include "base/text.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

class SlurmAgentTest : public testing::Test {
 protected:
  SlurmAgentTest() {
    world_.options.under = "slurm";
    world_.spec.cluster = "sky";
    Set("SLURM_JOB_ID", "40");
    Set("SLURM_JOB_NODELIST", "n1");
    Set("PATH", "/usr/bin:/bin");
  }
  ~SlurmAgentTest() override {
    for (const std::string& name : set_) unsetenv(name.c_str());
  }
  void Set(const std::string& name, const std::string& value) {
    setenv(name.c_str(), value.c_str(), 1);
    if (name != "PATH") set_.push_back(name);
  }
  void Save() {
    PosixFiles files;
    ASSERT_TRUE(files.MakeFolders(world_.Job()));
    ASSERT_TRUE(files.WriteAtomic(world_.Job() + "/spec.json", SpecToJson(world_.spec), false));
  }
  int Run() { return world_.Wait(world_.Start()); }
  std::string End(int attempt, int slot = 0) {
    world_.options.attempt = attempt;
    return world_.End(slot);
  }

  AgentWorld world_;
  std::vector<std::string> set_;
};

TEST_F(SlurmAgentTest, RunsTheJobOnceForEachStart) {
  world_.Shell("echo $OVERCAP_ATTEMPT $SLURM_JOB_ID $CUDA_VISIBLE_DEVICES >> $DIR/starts; exit 3");
  Set("CUDA_VISIBLE_DEVICES", "2,3");
  Save();
  EXPECT_EQ(Run(), 3);
  EXPECT_EQ(Run(), kAgentNotMine);
  Set("SLURM_RESTART_COUNT", "1");
  EXPECT_EQ(Run(), 3);
  EXPECT_EQ(Run(), kAgentNotMine);
  EXPECT_EQ(world_.Scratch("starts"), "1 40 2,3\n2 40 2,3\n");
  EXPECT_EQ(End(1), "failed 3 0 rank 0");
  EXPECT_EQ(End(2), "failed 3 0 rank 0");
}

TEST_F(SlurmAgentTest, RunsNothingWhenTheJobIsAnotherOneOfSlurms) {
  world_.Shell("echo ran > $DIR/ran");
  Save();
  ASSERT_TRUE(PosixFiles().WriteAtomic(world_.Job() + "/handle.json",
                                       "{\"driver\":\"slurm\",\"slurm_id\":39}", false));
  EXPECT_EQ(Run(), kAgentNotMine);
  EXPECT_EQ(world_.Scratch("ran"), "");
  EXPECT_EQ(PosixFiles().List(world_.Job())->size(), 2u);
}

TEST_F(SlurmAgentTest, EachTaskOfAnArrayIsAStartOfItsOwn) {
  world_.Shell("echo $OVERCAP_TASK_ID $OVERCAP_TASK_TRY $lr; test $OVERCAP_TASK_ID != 3");
  world_.spec.array.ranges = {{2, 3, 1}};
  world_.spec.sweep = {{"lr", {"0.1", "0.2"}}};
  Save();
  Set("SLURM_ARRAY_JOB_ID", "41");
  Set("SLURM_ARRAY_TASK_ID", "3");
  EXPECT_EQ(Run(), 1);
  EXPECT_EQ(Run(), kAgentNotMine);
  Set("SLURM_RESTART_COUNT", "1");
  EXPECT_EQ(Run(), 1);
  Set("SLURM_ARRAY_TASK_ID", "2");
  Set("SLURM_RESTART_COUNT", "0");
  EXPECT_EQ(Run(), 0);
  EXPECT_EQ(world_.File("task-3.rank-0.log"), "3 1 0.2\n");
  EXPECT_EQ(world_.File("task-3.try-2.rank-0.log"), "3 2 0.2\n");
  EXPECT_EQ(world_.File("task-2.rank-0.log"), "2 1 0.1\n");
  EXPECT_EQ(End(1, 0), "succeeded 0 0");
  EXPECT_EQ(End(1, 1), "failed 1 0 rank 0");
  EXPECT_EQ(End(1, 3), "failed 1 0 rank 0");
  EXPECT_EQ(world_.Report(3).tasks.at(0).attempt, 2);
}

TEST_F(SlurmAgentTest, AttemptsShareAFolderThatIsThere) {
  world_.Shell("echo $OVERCAP_ATTEMPT >> $OVERCAP_STATE_DIR/mine; cat $OVERCAP_STATE_DIR/mine");
  Save();
  EXPECT_EQ(Run(), 0);
  Set("SLURM_RESTART_COUNT", "1");
  EXPECT_EQ(Run(), 0);
  world_.options.attempt = 2;
  EXPECT_EQ(world_.File("rank-0.log"), "1\n2\n");
}

TEST_F(SlurmAgentTest, ABatchScriptRunsOnceAndIsNoRank) {
  world_.Shell("echo \"$SLURM_JOB_ID [$RANK]\"");
  world_.spec.batch = true;
  world_.spec.resources.ranks_per_node = 4;
  Save();
  EXPECT_EQ(Run(), 0);
  world_.options.attempt = 1;
  EXPECT_EQ(world_.File("rank-0.log"), "40 []\n");
  EXPECT_EQ(world_.Report().rank_ends.size(), 1u);
}

TEST_F(SlurmAgentTest, OutsideOfAJobItRunsNothing) {
  world_.Shell("true");
  Save();
  unsetenv("SLURM_JOB_ID");
  EXPECT_EQ(Run(), 1);
  EXPECT_EQ(PosixFiles().List(world_.Job())->size(), 1u);
}

}  // namespace
}  // namespace overcap
