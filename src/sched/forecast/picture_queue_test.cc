// SPDX-License-Identifier: Apache-2.0
#include "sched/forecast/picture_queue.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "model/policy/policy_text.h"
#include "sched/forecast/forecast.h"
#include "sched/forecast/policy_queue_rules.h"

namespace overcap::forecast {
namespace {

constexpr int64_t kNowUs = 1'700'000'000'000'000, kNow = kNowUs / 1'000'000;

// a1 and a2 with 4 a40, r1 with 4 rtx_6000; labs vision (cap 4) and speech; overcap gives way to short.
ClusterPicture Picture() {
  ClusterPicture picture;
  for (const char* name : {"a1", "a2", "r1"}) {
    PictureNode node;
    node.name = name, node.partitions = {"short", "overcap"}, node.cpus = 16;
    node.gpus = {{name[0] == 'a' ? "a40" : "rtx_6000", 4}};
    picture.nodes.push_back(node);
  }
  picture.partitions = {{.name = "short", .time_limit_s = 86400, .priority_tier = 10, .qos = "p_short"},
                        {.name = "overcap", .priority_tier = 1, .preemptable = true, .overcap = true}};
  picture.labs = {{.name = "vision", .gpu_cap = 4}, {.name = "speech"}};
  picture.qos = {{.name = "p_short", .gpus_per_user = 6}};
  return picture;
}

PictureJob Waiting(std::string id, std::string lab, int gpus, std::string type = "") {
  PictureJob job;
  job.native_id = std::move(id), job.user = "u-" + lab, job.lab = std::move(lab), job.partition = "short";
  job.state = JobState::kQueued, job.gpus = gpus, job.cpus = gpus, job.node_count = 1,
  job.wait = WaitKind::kTurn;
  job.time_limit_s = 3600;
  if (!type.empty()) job.gpu_types = {{type, gpus}};
  return job;
}

void Occupy(ClusterPicture* picture, const std::string& node, PictureJob job, int64_t ran_s) {
  job.nodes = {node}, job.state = JobState::kRunning, job.wait = WaitKind::kNone;
  job.started_us = kNowUs - ran_s * 1'000'000;
  for (PictureNode& one : picture->nodes) {
    if (one.name == node) one.gpus_used = {{one.gpus[0].type, job.gpus}};
  }
  picture->jobs.push_back(std::move(job));
}

Forecast See(const ClusterPicture& picture, size_t target) {
  const auto made = QueueOf(picture, target, kNowUs);
  EXPECT_TRUE(made) << made.error().message;
  const RunTimes times({});
  return Foresee(made->queue, times, {1, 20, 8, made->offered}, OneThread());
}

std::string Refused(const ClusterPicture& picture, size_t target) {
  const auto made = QueueOf(picture, target, kNowUs);
  return made ? "" : made.error().message;
}

TEST(PictureQueue, AFreeNodeTakesAJobNow) {
  ClusterPicture picture = Picture();
  picture.jobs = {Waiting("1", "speech", 4, "a40")};
  EXPECT_TRUE(See(picture, 0).now);
}

TEST(PictureQueue, TheCapOfALabHoldsAndOvercapDoesNotCount) {
  ClusterPicture picture = Picture();
  Occupy(&picture, "r1", Waiting("1", "vision", 4), 600);
  picture.jobs.push_back(Waiting("2", "vision", 2, "a40"));
  picture.jobs.back().wait = WaitKind::kLimit, picture.jobs.back().cap_of = CapOf::kLab,
  picture.jobs.back().cap_thing = CapThing::kGpus;
  const Forecast told = See(picture, 1);
  EXPECT_NEAR(static_cast<double>(told.start.p50_s), kNow + 3000, 60);
  ASSERT_FALSE(told.sooner.empty());
  EXPECT_EQ(told.sooner[0].instead.kind, Alternative::Kind::kPartition);
  EXPECT_EQ(told.sooner[0].start.p90_s, kNow);
}

TEST(PictureQueue, OvercapJobsGiveWay) {
  ClusterPicture picture = Picture();
  for (const char* node : {"a1", "a2"}) {
    PictureJob job = Waiting(node, "vision", 4, "a40");
    job.partition = "overcap", job.overcap = true;
    Occupy(&picture, node, job, 60);
  }
  picture.jobs.push_back(Waiting("3", "speech", 4, "a40"));
  EXPECT_LE(See(picture, 2).start.p90_s, kNow + 1);
}

// What it took before is told in seconds: its partition's limit says nothing about it.
TEST(PictureQueue, ARunThatNamedNoLimitTakesAsLongAsOthersThatNamedNone) {
  ClusterPicture picture = Picture();
  for (const char* node : {"a1", "a2"}) {
    PictureJob job = Waiting(node, "speech", 4, "a40");
    job.time_limit_s = 86400, job.limit_of_partition = true;
    Occupy(&picture, node, job, 60);
  }
  picture.jobs.push_back(Waiting("3", "speech", 4, "a40"));
  picture.qos.clear();
  const auto made = QueueOf(picture, 2, kNowUs);
  ASSERT_TRUE(made) << made.error().message;
  std::vector<PastRun> past(100, PastRun{"u-speech", "speech", "short", 0, 600, kNowUs});
  const RunTimes times(WithRunning(past, made->queue));
  const Forecast told = Foresee(made->queue, times, {1, 60, 0, 0}, OneThread());
  EXPECT_NEAR(static_cast<double>(told.start.p50_s), kNow + 540, 10);
}

TEST(PictureQueue, WhoGivesWayHasItsExemptTimeAndItsGrace) {
  ClusterPicture picture = Picture();
  picture.qos.push_back({.name = "over", .grace_s = 120, .exempt_s = 300});
  picture.qos[0].preempts = {"over"};
  for (const char* node : {"a1", "a2"}) {
    PictureJob job = Waiting(node, "vision", 4, "a40");
    job.partition = "overcap", job.qos = "over", job.overcap = true;
    Occupy(&picture, node, job, 60);
  }
  picture.jobs.push_back(Waiting("3", "speech", 4, "a40"));
  EXPECT_NEAR(static_cast<double>(See(picture, 2).start.p50_s), kNow + 240 + 120, 10);
  picture.qos.back() = {.name = "over"};
  picture.partitions[1].grace_s = 30;
  EXPECT_NEAR(static_cast<double>(See(picture, 2).start.p50_s), kNow + 30, 2) << "that of the partition";
  const auto made = QueueOf(picture, 2, kNowUs);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_NE(Join(made->queue.assumed, "; ").find("after their grace"), std::string::npos);
}

TEST(PictureQueue, WhoHasAHigherPriorityGoesFirst) {
  ClusterPicture picture = Picture();
  for (const char* node : {"a1", "a2"})
    Occupy(&picture, node, Waiting(node, "speech", 4, "a40"), node[1] == '1' ? 1800 : 600);
  picture.jobs.push_back(Waiting("3", "vision", 4, "a40"));
  picture.jobs.push_back(Waiting("4", "art", 4, "a40"));
  picture.jobs[2].priority = 5, picture.jobs[3].priority = 9;
  EXPECT_NEAR(static_cast<double>(See(picture, 3).start.p50_s), kNow + 1800, 60);
  EXPECT_NEAR(static_cast<double>(See(picture, 2).start.p50_s), kNow + 3000, 60);
}

TEST(PictureQueue, GpusInUseByJobsThatCannotBeSeenAreNotFree) {
  ClusterPicture picture = Picture();
  for (PictureNode& node : picture.nodes) node.gpus_used = node.gpus;
  picture.jobs = {Waiting("1", "speech", 1)};
  EXPECT_EQ(See(picture, 0).start, StartTimes{});
  EXPECT_NE(Join(QueueOf(picture, 0, kNowUs)->queue.assumed, "\n")
                .find("12 GPUs in use by jobs that cannot be seen"),
            std::string::npos);
}

TEST(PictureQueue, NodesThatAreAwayTakeNothing) {
  ClusterPicture picture = Picture();
  picture.nodes[0].usable = picture.nodes[1].usable = false;
  picture.jobs = {Waiting("1", "speech", 1, "a40")};
  EXPECT_EQ(See(picture, 0).start, StartTimes{});
}

TEST(PictureQueue, WhatCannotBeForetoldSaysWhy) {
  ClusterPicture picture = Picture();
  picture.jobs = {Waiting("1", "speech", 1)};
  picture.jobs[0].wait = WaitKind::kDependency;
  EXPECT_EQ(Refused(picture, 0), "no promise: it waits for other jobs first");
  picture.jobs[0].wait = WaitKind::kHeld;
  EXPECT_EQ(Refused(picture, 0), "no promise: it is held");
  picture.jobs[0].wait = WaitKind::kNodes;
  EXPECT_EQ(Refused(picture, 0), "");
  picture.jobs[0].reason_text =
      "a node that it needs is down, drained or reserved (Reserved for maintenance)";
  EXPECT_EQ(Refused(picture, 0),
            "no promise: it waits for a maintenance, of which nothing more is known here");
  picture.jobs[0].wait = WaitKind::kLimit, picture.jobs[0].cap_of = CapOf::kLab,
  picture.jobs[0].cap_thing = CapThing::kJobs;
  EXPECT_EQ(Refused(picture, 0), "no promise: the limit that it waits for is not known here");
  picture.jobs[0].wait = WaitKind::kTurn;
  for (PicturePartition& one : picture.partitions) one.up = false;
  EXPECT_EQ(Refused(picture, 0), StrCat("no promise: partition '", picture.jobs[0].partition, "' is down"));
  picture.jobs[0].partition = "nowhere";
  EXPECT_EQ(See(picture, 0).start, StartTimes{}) << "no node is in it";
}

TEST(PictureQueue, APolicySaysWhoGivesWayAndAfterWhichGrace) {
  const auto policy = ParsePolicy(
      "nodes:\n  here: {gpus: a40:4, cpus: 16}\nlabs:\n  vision: 2 ann\n  speech: 2 bob\n"
      "partitions:\n  overcap: {grace: 5m, quantum: 0}\n",
      "policy.yaml");
  ASSERT_TRUE(policy) << policy.error().message;
  ClusterPicture picture;
  PictureNode node;
  node.name = "here", node.cpus = 16, node.gpus = {{"a40", 4}};
  picture.nodes = {node};
  for (const PolicyPartition& one : policy->partitions) {
    PicturePartition made;
    made.name = one.name, made.priority_tier = one.priority, made.overcap = one.counts == CapRule::kFree;
    picture.partitions.push_back(made);
  }
  picture.labs = {{.name = "vision", .gpu_cap = 2}, {.name = "speech", .gpu_cap = 2}};
  PictureJob over = Waiting("1", "vision", 4);
  over.partition = "overcap", over.overcap = true;
  Occupy(&picture, "here", over, 7200);
  picture.jobs.back().time_limit_s = 86400;
  picture.jobs.push_back(Waiting("2", "speech", 2));
  auto made = QueueOf(picture, 1, kNowUs);
  ASSERT_TRUE(made);
  FollowPolicy(*policy, {}, &made->queue);
  const RunTimes times({});
  const Forecast told = Foresee(made->queue, times, {1, 20, 0, 0}, OneThread());
  EXPECT_EQ(told.start, (StartTimes{kNow + 300, kNow + 300}));
}

TEST(PictureQueue, AMachineWithoutPartitionsIsOne) {
  ClusterPicture picture;
  PictureNode node;
  node.name = "here", node.cpus = 8, node.gpus = {{"a40", 2}};
  picture.nodes = {node};
  PictureJob job = Waiting("1", "", 2);
  job.partition = "";
  Occupy(&picture, "here", job, 60);
  picture.jobs.push_back(job);
  EXPECT_NEAR(static_cast<double>(See(picture, 1).start.p50_s), kNow + 3540, 60);
}

}  // namespace
}  // namespace overcap::forecast
