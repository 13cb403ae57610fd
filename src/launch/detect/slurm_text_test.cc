// SPDX-License-Identifier: Apache-2.0
#include "launch/detect/slurm_text.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "sys/posix_files.h"

namespace overcap {
namespace {

int CountOfGpus(std::string_view text) {
  const auto gpus = ParseSlurmGpus(text);
  return gpus ? gpus->count : -1;
}

TEST(SlurmTextTest, GpusAreCountedInEveryFormThatSlurmWrites) {
  EXPECT_EQ(CountOfGpus("2"), 2);
  EXPECT_EQ(CountOfGpus("a40:2"), 2);
  EXPECT_EQ(CountOfGpus("gpu:a40:2(IDX:0-1)"), 2);
  EXPECT_EQ(CountOfGpus("gpu:a40:2(IDX:0,2),gpu:a100:1(IDX:3)"), 3);
  EXPECT_EQ(CountOfGpus("gres:gpu:a40:2"), 2);
  EXPECT_EQ(CountOfGpus("gres/gpu:4"), 4);
  EXPECT_EQ(CountOfGpus("gres/gpu:a40=4"), 4);
  EXPECT_EQ(CountOfGpus("gpu"), 1);
  EXPECT_EQ(CountOfGpus("gpu:a40"), 1);
  EXPECT_EQ(CountOfGpus(""), 0);
  EXPECT_EQ(CountOfGpus("shard:8"), 0);
  EXPECT_EQ(CountOfGpus("gres:nic:ib:2"), 0);
  EXPECT_EQ(CountOfGpus("a40:-1"), -1);
  EXPECT_EQ(CountOfGpus("99999999999"), -1);
  EXPECT_EQ(ParseSlurmGpus("gres:gpu:A40:2")->type, "a40");
  EXPECT_EQ(ParseSlurmGpus("2")->type, "");
}

TEST(SlurmTextTest, TasksPerNodeAreSpelledOut) {
  EXPECT_EQ(ParseTasksPerNode("2(x2),1"), (std::vector<int>{2, 2, 1}));
  EXPECT_EQ(ParseTasksPerNode("4"), (std::vector<int>{4}));
  for (const char* bad : {"", "x", "2(x", "2(x)", "2(x0)", "-1", "2(x99999999999)", "1,,2"}) {
    EXPECT_EQ(ParseTasksPerNode(bad), std::vector<int>()) << bad;
  }
}

JobLife LifeFrom(std::string output, int status = 0) {
  return SlurmLifeFrom({{status, 0}, std::move(output)});
}

TEST(SlurmTextTest, ARunningJobLivesAndAnEndedOneIsOver) {
  EXPECT_EQ(LifeFrom("RUNNING\n"), JobLife::kLives);
  EXPECT_EQ(LifeFrom("PENDING\nRUNNING\n"), JobLife::kLives);
  EXPECT_EQ(LifeFrom("squeue: warning: something\nRUNNING\n"), JobLife::kLives);
  EXPECT_EQ(LifeFrom("COMPLETED\n"), JobLife::kOver);
  EXPECT_EQ(LifeFrom("PENDING\n"), JobLife::kOver) << "requeued: it does not hold this host";
  EXPECT_EQ(LifeFrom(""), JobLife::kOver);
  EXPECT_EQ(LifeFrom("slurm_load_jobs error: Invalid job id specified\n", 1), JobLife::kOver);
  EXPECT_EQ(LifeFrom("slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n", 1),
            JobLife::kNotTold);
  EXPECT_EQ(LifeFrom("\x01\xff\n"), JobLife::kNotTold);
}

TEST(SlurmTextTest, OnlyWholeLinesOfTheQueueCount) {
  const auto lines = ParseSqueueLines(
      "squeue: warning|x|y\n123|2026-11-15T02:15:09|n[1-2]\n1234|2026-11-15T02:15:10|n1\n12|2026\n99|t|\n");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].id, "123");
  EXPECT_EQ(lines[0].node_list, "n[1-2]");
  EXPECT_EQ(lines[1].id, "1234");
}

std::string Sample() {
  return PosixFiles()
      .Read(std::string(OVERCAP_TEST_DATA) + "/slurm-22.05.8/scontrol-o-d-show-job.txt")
      .value();
}

TEST(SlurmTextTest, ScontrolTellsAJobsHostsAndTheirGpus) {
  const auto job = ParseScontrolJob(Sample(), "4").value();
  EXPECT_EQ(job.name, "run1");
  EXPECT_EQ(job.partition, "short");
  EXPECT_EQ(job.account, "lab-b");
  EXPECT_EQ(job.node_list, "n1");
  EXPECT_EQ(job.work_dir, "/srv/lab");
  EXPECT_EQ(job.gpus, (std::map<std::string, int>{{"n1", 2}}));
  EXPECT_EQ(job.gpu_type, "a40");
  EXPECT_EQ(ParseScontrolJob(Sample(), "2")->per_node.count, 2);
}

TEST(SlurmTextTest, HostsOfAJobMayHaveDifferentNumbersOfGpus) {
  const auto job = ParseScontrolJob(
      "JobId=9 JobName=x UserId=u(1) NodeList=n[1-4] JOB_GRES=gpu:a40:7   Nodes=n[1-2] CPU_IDs=0 Mem=1 "
      "GRES=gpu:a40:3(IDX:0-2)   Nodes=n3 CPU_IDs=0 Mem=1 GRES=gpu:a40:1(IDX:0) MinCPUsNode=1 WorkDir=/a b "
      "Power=\n",
      "9");
  EXPECT_EQ(job->gpus, (std::map<std::string, int>{{"n1", 3}, {"n2", 3}, {"n3", 1}, {"n4", 0}}));
  EXPECT_EQ(job->work_dir, "/a b");
}

TEST(SlurmTextTest, AJobsNameCannotPassForAField) {
  const auto job = ParseScontrolJob(
      "JobId=9 JobName=a NodeList=evil Partition=evil UserId=u(1) Partition=p NodeList=n1\n", "9");
  EXPECT_EQ(job->node_list, "n1");
  EXPECT_EQ(job->partition, "p");
  EXPECT_EQ(job->name, "a NodeList=evil Partition=evil");
}

TEST(SlurmTextTest, Job123IsNot1234) {
  EXPECT_FALSE(ParseScontrolJob("JobId=1234 JobName=x UserId=u(1) NodeList=n1\n", "123"));
  EXPECT_FALSE(ParseScontrolJob("JobId=123 JobName=x UserId=u(1) NodeList=n1\n", "1234"));
  EXPECT_FALSE(ParseScontrolJob("slurm_load_jobs error: Invalid job id specified\n", "123"));
  EXPECT_FALSE(ParseScontrolJob("", "123"));
}

TEST(SlurmTextTest, AStepOfSeveralTasksIsOneOfRanks) {
  EXPECT_TRUE(IsRankStep("0", "2"));
  EXPECT_FALSE(IsRankStep("0", "1"));
  EXPECT_FALSE(IsRankStep("", ""));
  for (const char* special : {"4294967290", "4294967291", "4294967292", "4294967295"}) {
    EXPECT_FALSE(IsRankStep(special, "4")) << special;
  }
}

TEST(SlurmTextTest, AnyBytesAreSurvived) {
  EXPECT_TRUE(rc::check("nothing crashes", [](const std::string& bytes) {
    (void)ParseSlurmGpus(bytes);
    (void)ParseTasksPerNode(bytes);
    (void)ParseSqueueLines(bytes);
    (void)ParseScontrolJob("JobId=1 " + bytes, "1");
    (void)SlurmLifeFrom({{0, 0}, bytes});
  }));
}

}  // namespace
}  // namespace overcap
