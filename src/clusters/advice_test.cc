// SPDX-License-Identifier: Apache-2.0
#include "clusters/advice.h"

#include <gtest/gtest.h>

namespace overcap {
namespace {

using Lines = std::vector<std::string>;

// Two nodes with 48 CPUs and 8 a40, one with 4 t4; everything in 'short' (1 day) and 'overcap'.
ClusterPicture Cluster() {
  ClusterPicture picture;
  for (const char* name : {"n1", "n2", "n3"}) {
    PictureNode node;
    node.name = name;
    node.partitions = {"short", "overcap"};
    node.cpus = 48, node.mem_bytes = int64_t{256} << 30;
    node.gpus = {{"a40", 8}};
    node.gpus_used = {{"a40", 0}};
    picture.nodes.push_back(node);
  }
  picture.nodes[2].gpus = {{"t4", 4}}, picture.nodes[2].gpus_used = {{"t4", 0}};
  PicturePartition partition{.name = "short", .is_default = true, .time_limit_s = 86400, .priority_tier = 10};
  picture.partitions.push_back(partition);
  partition = {
      .name = "overcap", .time_limit_s = 7 * 86400, .priority_tier = 1, .preemptable = true, .overcap = true};
  picture.partitions.push_back(partition);
  PictureLab lab;
  lab.name = "vision", lab.gpu_cap = 4, lab.users = {"alice"}, lab.default_of = {"alice"};
  picture.labs.push_back(lab);
  return picture;
}

JobSpec Asking(int gpus, int cpus = 0, std::string type = "") {
  JobSpec spec;
  spec.resources.gpus = gpus, spec.resources.cpus = cpus, spec.resources.gpu_type = std::move(type);
  return spec;
}

Lines Advise(const ClusterPicture& picture, const JobSpec& spec, int64_t age_s = 0) {
  return AdviceFor(picture, {spec, "alice", age_s});
}

PictureJob Running(int gpus) {
  PictureJob job;
  job.user = "bob", job.lab = "vision", job.partition = "short", job.nodes = {"n1"}, job.gpus = gpus;
  return job;
}

TEST(Advice, AJobThatFitsGetsNone) {
  EXPECT_EQ(Advise(Cluster(), Asking(2, 12, "a40")), Lines{});
  EXPECT_EQ(Advise(Cluster(), Asking(0, 4)), Lines{});
  EXPECT_EQ(Advise(ClusterPicture{}, Asking(2, 12)), Lines{});
}

TEST(Advice, TooManyCpusPerGpuKeepOthersFromTheRest) {
  EXPECT_EQ(Advise(Cluster(), Asking(2, 40, "a40")),
            Lines{"6 CPUs per GPU here (n1); you ask 20: 5 GPUs of this node could not be used"});
  EXPECT_EQ(Advise(Cluster(), Asking(1, 7, "a40")),
            Lines{"6 CPUs per GPU here (n1); you ask 7: 1 GPU of this node could not be used"});
}

TEST(Advice, ATypeThatNoNodeHasIsTold) {
  EXPECT_EQ(Advise(Cluster(), Asking(1, 0, "h100")),
            Lines{"no node has a GPU of type 'h100'; there is: a40 (16), t4 (4)"});
}

TEST(Advice, MoreThanTheBiggestNodeHasIsTold) {
  ClusterPicture picture = Cluster();
  picture.labs.clear();
  EXPECT_EQ(Advise(picture, Asking(16, 0, "a40")),
            Lines{"asks for 16 GPUs on one node; the biggest has 8: --nodes 2 would do"});
  EXPECT_EQ(Advise(picture, Asking(1, 100)), Lines{"asks for 100 CPUs on one node; the biggest has 48"});
}

TEST(Advice, ATimeAboveThePartitionsIsToldWithOneThatAllowsIt) {
  ClusterPicture picture = Cluster();
  picture.partitions.push_back({.name = "long", .time_limit_s = 7 * 86400});
  JobSpec spec = Asking(1, 0, "a40");
  spec.resources.time_seconds = 2 * 86400;
  EXPECT_EQ(Advise(picture, spec, 300),
            Lines{"partition 'short' allows at most 1d, you ask for 2d; partition 'long' allows 7d"});
}

TEST(Advice, AnAccountOfOthersIsTold) {
  JobSpec spec = Asking(1);
  spec.placement.account = "speech";
  EXPECT_EQ(Advise(Cluster(), spec), Lines{"you are not in account 'speech'; yours: vision"});
  ClusterPicture nobody = Cluster();
  nobody.labs[0].users.clear();  // the cluster does not tell who is in which
  EXPECT_EQ(Advise(nobody, spec), Lines{});
}

TEST(Advice, PartitionsThatAreNotThereOrTakeNoneOfTheLabsJobsAreTold) {
  ClusterPicture picture = Cluster();
  picture.partitions[0].allowed_labs = {"speech"};
  JobSpec spec = Asking(1);
  spec.placement.partitions = {"shrt", "short"};
  const Lines lines = Advise(picture, spec, 300);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], "there is no partition 'shrt' here; there is: short, overcap");
  EXPECT_EQ(lines[1], "partition 'short' takes no jobs of account 'vision'");
}

TEST(Advice, APartitionThatIsDownIsToldWithItsAge) {
  ClusterPicture picture = Cluster();
  picture.partitions[0].up = false, picture.partitions[1].up = false;
  EXPECT_EQ(Advise(picture, Asking(0, 1), 12), Lines{"partition 'short' is down: nothing starts there now"});
  EXPECT_EQ(Advise(picture, Asking(0, 1), 120), Lines{"partition 'short' was down 2m ago"});
  EXPECT_EQ(Advise(picture, Asking(0, 1), 300), Lines{});
}

TEST(Advice, WhenTheCapIsInUseThePartitionThatWouldStartNowIsTold) {
  ClusterPicture picture = Cluster();
  picture.jobs = {Running(4)};
  EXPECT_EQ(Advise(picture, Asking(2)),
            Lines{"lab 'vision' has 4 of its 4 GPUs in use; partition 'overcap' would start it now: "
                  "-p overcap (jobs there may be preempted: --requeue)"});
  JobSpec in_qos = Asking(2);
  in_qos.placement.qos = "urgent";
  picture.partitions[1].allowed_qos = {"overcap"};
  EXPECT_EQ(Advise(picture, in_qos), Lines{"lab 'vision' has 4 of its 4 GPUs in use: the job will wait"});
  EXPECT_EQ(Advise(picture, Asking(2), 300), Lines{});
  for (PictureNode& node : picture.nodes) node.gpus_used = node.gpus;
  EXPECT_EQ(Advise(picture, Asking(2)), Lines{"lab 'vision' has 4 of its 4 GPUs in use: the job will wait"});
  EXPECT_EQ(Advise(picture, Asking(8, 0, "a40")),
            Lines{"asks for 8 GPUs, lab 'vision' may have 4: the job will wait"});
}

TEST(Advice, TheJobsOfOthersMatterOnlyUnderACap) {
  EXPECT_TRUE(AdviceNeedsJobs(Cluster(), {Asking(2), "alice", 0}));
  EXPECT_FALSE(AdviceNeedsJobs(Cluster(), {Asking(0), "alice", 0}));
  EXPECT_FALSE(AdviceNeedsJobs(Cluster(), {Asking(2), "alice", 300}));
  EXPECT_FALSE(AdviceNeedsJobs(Cluster(), {Asking(2), "carol", 0}));
}

TEST(Advice, AnotherPartitionWithFreeNodesIsTold) {
  ClusterPicture picture = Cluster();
  picture.nodes[0].gpus_used = picture.nodes[0].gpus;
  picture.nodes[0].partitions = {"short"};
  picture.nodes[1].partitions = {"debug"};
  picture.nodes[2].partitions = {"debug"};
  picture.partitions.push_back({.name = "debug"});
  EXPECT_EQ(Advise(picture, Asking(2)),
            Lines{"nothing is free for it now; partition 'debug' would start it now: -p debug"});
}

}  // namespace
}  // namespace overcap
