// SPDX-License-Identifier: Apache-2.0
// The agent under Slurm, with Slurm's variables and without a Slurm.
#include "agent/slurm/slurm_agent.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <signal.h>
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
  void Write(const std::string& name, const std::string& text) {
    EXPECT_TRUE(PosixFiles().WriteAtomic(StrCat(world_.Job(), "/", name), text, false));
  }
  int Run() { return world_.Wait(world_.Start()); }
  // Programs of Slurm that say what the test wants, and what they were asked is in Scratch("asked").
  void FakeTools(const std::string& squeue, const std::string& scontrol) {
    Tool("squeue", StrCat("echo '", squeue, "'"));
    Tool("scontrol", StrCat("echo scontrol \"$@\" >> ", world_.Root(), "/asked\n", scontrol));
    Set("PATH", StrCat(world_.Root(), "/bin:/usr/bin:/bin"));
  }
  void Tool(const std::string& name, const std::string& script) {
    std::filesystem::create_directories(world_.Root() + "/bin");
    std::ofstream(StrCat(world_.Root(), "/bin/", name)) << "#!/bin/sh\n" << script << "\n";
    std::filesystem::permissions(StrCat(world_.Root(), "/bin/", name), std::filesystem::perms::owner_all);
  }
  // Runs a job that waits, and sends it a signal when it does.
  int RunAndSignal(int signal, const std::string& cancel = "") {
    world_.Shell(
        "trap 'exit 143' TERM; trap 'exit 138' USR1; echo > $DIR/ready; while :; do sleep 0.01; done");
    Save();
    const pid_t agent = world_.Start();
    EXPECT_TRUE(world_.Appears("ready"));
    if (!cancel.empty()) Write("cancel.json", cancel);
    kill(agent, signal);
    return world_.Wait(agent);
  }
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

TEST_F(SlurmAgentTest, AJobThatHasSucceededIsNotRunAgainByAnotherStart) {
  world_.Shell("echo $OVERCAP_ATTEMPT >> $DIR/starts; test $OVERCAP_ATTEMPT = 2");
  Save();
  EXPECT_EQ(Run(), 1);
  Set("SLURM_RESTART_COUNT", "1");
  EXPECT_EQ(Run(), 0);
  Set("SLURM_RESTART_COUNT", "2");
  EXPECT_EQ(Run(), 0);
  EXPECT_EQ(world_.Scratch("starts"), "1\n2\n");
  EXPECT_FALSE(PosixFiles().Exists(world_.Job() + "/attempt-3"));
}

TEST_F(SlurmAgentTest, ATaskThatHasSucceededIsNotRunAgainAndOthersAre) {
  world_.Shell("echo $OVERCAP_TASK_ID >> $DIR/starts; test $OVERCAP_TASK_ID = 2");
  world_.spec.array.ranges = {{2, 3, 1}};
  Save();
  Set("SLURM_ARRAY_JOB_ID", "41");
  for (const char* restart : {"0", "1"}) {
    Set("SLURM_RESTART_COUNT", restart);
    Set("SLURM_ARRAY_TASK_ID", "2");
    EXPECT_EQ(Run(), 0);
    Set("SLURM_ARRAY_TASK_ID", "3");
    EXPECT_EQ(Run(), 1);
  }
  EXPECT_EQ(world_.Scratch("starts"), "2\n3\n3\n");
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
  world_.Shell(
      "echo $OVERCAP_ATTEMPT >> $OVERCAP_STATE_DIR/mine; cat $OVERCAP_STATE_DIR/mine; test $OVERCAP_ATTEMPT "
      "= 2");
  Save();
  EXPECT_EQ(Run(), 1);
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

constexpr char kPreempting[] = "RUNNING|0|5|10:00|6|", kRequeued[] = "COMPLETING|1|5|10:00|N/A|";
constexpr char kCompleting[] = "COMPLETING|0|5000000000|10:00|N/A|",
               kRunning[] = "RUNNING|0|5000000000|10:00|N/A|";

TEST_F(SlurmAgentTest, APreemptedJobIsSentBackOnce) {
  world_.spec.requeue = true;
  FakeTools(kPreempting, "kill -TERM $PPID");  // Slurm ends what it sends back
  EXPECT_EQ(RunAndSignal(SIGTERM), 143);
  EXPECT_EQ(End(1), "preempted 143 0: preempted");
  EXPECT_EQ(world_.Report().requeue, "preempted");
  EXPECT_EQ(world_.Scratch("asked"), "scontrol requeue 40\n");
  EXPECT_EQ(world_.File("requeue"), "preempted\n");
}

TEST_F(SlurmAgentTest, AJobThatSlurmSendsBackItselfIsLeftToIt) {
  world_.spec.requeue = true;
  FakeTools(kRequeued, "exit 1");
  EXPECT_EQ(RunAndSignal(SIGTERM), 143);
  EXPECT_EQ(End(1), "preempted 143 0: preempted");
  EXPECT_EQ(world_.Report().requeue, "preempted");
  EXPECT_EQ(world_.Scratch("asked"), "");
}

TEST_F(SlurmAgentTest, AJobThatIsCancelledInSlurmEnds) {
  world_.spec.requeue = true;
  FakeTools(kCompleting, "exit 1");
  EXPECT_EQ(RunAndSignal(SIGTERM), 143);
  EXPECT_EQ(End(1), "cancelled 143 0: cancelled in Slurm");
  EXPECT_EQ(world_.Scratch("asked"), "");
}

constexpr char kCancel[] = "{\"reason\": \"cancelled by ada\"}";

TEST_F(SlurmAgentTest, AJobThatSomebodyCancelledSaysWhy) {
  world_.spec.requeue = true;
  FakeTools(kPreempting, "exit 1");
  EXPECT_EQ(RunAndSignal(SIGTERM, kCancel), 143);
  EXPECT_EQ(End(1), "cancelled 143 0: cancelled by ada");
  EXPECT_EQ(world_.Scratch("asked"), "");
}

TEST_F(SlurmAgentTest, AJobThatWasCancelledWhileItWaitedRunsNothing) {
  world_.spec.requeue = true;
  world_.Shell("echo ran > $DIR/ran");
  Save();
  Write("cancel.json", kCancel);
  EXPECT_EQ(Run(), 1);
  EXPECT_EQ(End(1), "cancelled -1 0: cancelled by ada");
  EXPECT_EQ(world_.Scratch("ran"), "");
}

TEST_F(SlurmAgentTest, WhatSlurmSaysWhenItRefusesIsKept) {
  world_.spec.requeue = true;
  FakeTools(kRunning, "echo 'Requested operation is presently disabled for job 40' >&2; exit 1");
  EXPECT_EQ(RunAndSignal(SIGTERM), 143);
  EXPECT_EQ(End(1), "preempted 143 0: preempted");
  EXPECT_EQ(world_.Report().requeue, "");
  ASSERT_EQ(world_.Report().notes.size(), 1u);
  EXPECT_EQ(world_.Report().notes[0],
            "not started again: scontrol requeue: Requested operation is presently disabled for job 40");
}

TEST_F(SlurmAgentTest, AJobThatWaitsAlreadyWasSentBack) {
  world_.spec.requeue = true;
  FakeTools(kRunning, "echo 'Job is pending execution for job 40' >&2; exit 1");
  EXPECT_EQ(RunAndSignal(SIGTERM), 143);
  EXPECT_EQ(world_.Report().requeue, "preempted");
  EXPECT_EQ(world_.Report().notes, std::vector<std::string>{});
}

TEST_F(SlurmAgentTest, AWarnedJobMayEndWithItsWorkUndoneAndIsAllowedToComeBack) {
  world_.spec.requeue_on_timeout = true;
  world_.spec.resources.time_seconds = 600;
  FakeTools(kRunning, "case $1 in requeue) kill -TERM $PPID;; esac");
  EXPECT_EQ(RunAndSignal(SIGUSR1), 124);
  EXPECT_EQ(End(1), "failed 124 0: time limit of 10m reached");
  EXPECT_EQ(world_.Report().requeue, "time limit");
  EXPECT_EQ(world_.Scratch("asked"), "scontrol update JobId=40 Requeue=1\nscontrol requeue 40\n");
}

TEST_F(SlurmAgentTest, RanksAreEndedBeforeTheTimeLimit) {
  world_.spec.requeue_on_timeout = world_.spec.requeue = true;
  world_.spec.warn_seconds = 2;
  FakeTools("", "kill -TERM $PPID");
  Set("SLURM_JOB_END_TIME", StrCat(time(nullptr) + 10));  // the ranks must be ready before they are told
  world_.Shell("trap 'echo told > $DIR/told; exit 1' TERM; while :; do sleep 0.01; done");
  Save();
  EXPECT_EQ(Run(), 124);
  EXPECT_EQ(End(1), "failed 124 0: time limit reached");
  EXPECT_EQ(world_.Report().requeue, "time limit");
  EXPECT_EQ(world_.Scratch("told"), "told\n");
  EXPECT_EQ(world_.Scratch("asked"), "scontrol requeue 40\n");
}

TEST_F(SlurmAgentTest, ATaskIsSentBackByItsNumberInTheArray) {
  world_.spec.requeue = true;
  world_.spec.array.ranges = {{2, 3, 1}};
  Set("SLURM_ARRAY_JOB_ID", "40");
  Set("SLURM_ARRAY_TASK_ID", "3");
  FakeTools(kPreempting, "kill -TERM $PPID");
  EXPECT_EQ(RunAndSignal(SIGTERM), 143);
  EXPECT_EQ(End(1, 1), "preempted 143 0: preempted");
  EXPECT_EQ(world_.Report(1).tasks.at(0).ending.state, JobState::kPreempted);
  EXPECT_EQ(world_.Scratch("asked"), "scontrol requeue 40_3\n");
  EXPECT_EQ(world_.File("requeue-1"), "preempted\n");
}

TEST_F(SlurmAgentTest, TheThirdSoonEndIsTheLast) {
  world_.spec.requeue = true;
  FakeTools(kPreempting, "");
  for (const char* restart : {"0", "1", "2"}) {
    std::filesystem::remove(world_.Root() + "/ready");
    Set("SLURM_RESTART_COUNT", restart);
    Tool("squeue", StrCat("echo 'RUNNING|", restart, "|5|10:00|6|'"));
    Tool("scontrol", StrCat("echo scontrol \"$@\" >> ", world_.Root(), "/asked; kill -TERM $PPID"));
    EXPECT_EQ(RunAndSignal(SIGTERM), 143);
  }
  EXPECT_EQ(End(3), "preempted 143 0: preempted");
  EXPECT_EQ(world_.Report().requeue, "");
  EXPECT_EQ(world_.Report().notes.size(), 1u);
  // Slurm 24.05 and newer would requeue it once more at this end.
  EXPECT_EQ(world_.Scratch("asked"),
            "scontrol requeue 40\nscontrol requeue 40\nscontrol update JobId=40 Requeue=0\n");
}

TEST_F(SlurmAgentTest, AFailedJobIsTriedAgainAsOftenAsItMayBe) {
  world_.Shell("echo $OVERCAP_ATTEMPT >> $DIR/tries; exit 5");
  world_.spec.max_restarts = 2;
  Save();
  EXPECT_EQ(Run(), 5);
  EXPECT_EQ(world_.Scratch("tries"), "1\n2\n3\n");
  EXPECT_EQ(End(3), "failed 5 0 rank 0");
  EXPECT_EQ(Run(), kAgentNotMine);
}

}  // namespace
}  // namespace overcap
