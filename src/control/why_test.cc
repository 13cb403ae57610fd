// SPDX-License-Identifier: Apache-2.0
#include "control/why.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/text.h"

namespace overcap {
namespace {

constexpr int64_t kNow = 1'700'000'000'000'000;

// Two nodes with 4 a40, all in use but one; labs vision (cap 4) and speech.
ClusterPicture Picture() {
  ClusterPicture picture;
  for (const char* name : {"n1", "n2"}) {
    PictureNode node;
    node.name = name, node.state = "mixed", node.partitions = {"short", "overcap"}, node.cpus = 16;
    node.gpus = {{"a40", 4}}, node.gpus_used = {{"a40", 4}};
    picture.nodes.push_back(node);
  }
  picture.partitions = {{.name = "short", .time_limit_s = 86400, .priority_tier = 10, .qos = "p_short"},
                        {.name = "overcap", .priority_tier = 1, .preemptable = true, .overcap = true}};
  picture.labs = {{.name = "vision", .gpu_cap = 4}, {.name = "speech"}};
  picture.qos = {{.name = "p_short", .gpus_per_user = 6}};
  return picture;
}

PictureJob Job(std::string id, std::string user, int gpus, WaitKind wait = WaitKind::kTurn) {
  PictureJob job;
  job.native_id = std::move(id), job.user = std::move(user), job.lab = "vision", job.partition = "short";
  job.state = JobState::kQueued, job.gpus = gpus, job.cpus = gpus, job.node_count = 1;
  job.wait = wait, job.reason = "Word", job.reason_text = "in plain words", job.priority = 10;
  return job;
}

PictureJob Running(std::string id, std::string user, int gpus) {
  PictureJob job = Job(std::move(id), std::move(user), gpus, WaitKind::kNone);
  job.nodes = {"n1"}, job.state = JobState::kRunning, job.reason.clear(), job.reason_text.clear();
  return job;
}

JobRecord Record(std::string id, JobState state = JobState::kQueued) {
  JobRecord record;
  record.spec.id = std::move(id);
  record.state = state;
  return record;
}

std::string Facts(const WhyAnswer& answer) {
  return Join(answer.facts, "\n");
}
std::string Sooner(const WhyAnswer& answer) {
  return Join(answer.sooner, "\n");
}

TEST(Why, ACapThatIsInUseIsToldWithWhoUsesIt) {
  ClusterPicture picture = Picture();
  picture.jobs = {Running("1", "bob", 1), Running("2", "alice", 3), Job("3", "alice", 2, WaitKind::kLimit)};
  picture.jobs[2].cap_of = CapOf::kLab, picture.jobs[2].cap_thing = CapThing::kGpus;
  const WhyAnswer answer = ExplainJob(Record("3"), &picture, kNow);
  EXPECT_EQ(answer.text, "in plain words");
  EXPECT_EQ(answer.reason, "Word");
  EXPECT_EQ(Facts(answer),
            "lab 'vision' may have 4 GPUs at a time; 4 are in use: alice 3, bob 1\n"
            "this job asks for 2; 2 must become free");
  ASSERT_TRUE(answer.cap);
  EXPECT_EQ(answer.cap->used, 4);
}

TEST(Why, ALimitOfAUserInAPartitionIsToldAsSuch) {
  ClusterPicture picture = Picture();
  picture.jobs = {Running("1", "bob", 2), Running("2", "alice", 5), Job("3", "alice", 2, WaitKind::kLimit)};
  picture.jobs[2].cap_of = CapOf::kUserInQos, picture.jobs[2].cap_thing = CapThing::kGpus;
  EXPECT_EQ(Facts(ExplainJob(Record("3"), &picture, kNow)),
            "user 'alice' in QOS 'p_short' may have 6 GPUs at a time; 5 are in use: alice 5\n"
            "this job asks for 2; 1 must become free");
}

TEST(Why, JobsAheadAndWhatIsFreeAreCounted) {
  ClusterPicture picture = Picture();
  picture.nodes[0].gpus_used = {{"a40", 3}};
  picture.jobs = {Job("1", "bob", 2), Job("2", "bob", 4), Job("3", "alice", 2), Job("4", "carol", 1)};
  picture.jobs[0].tasks = 3, picture.jobs[0].priority = 20;
  picture.jobs[1].wait = WaitKind::kHeld;
  picture.jobs[3].priority = 5;
  picture.jobs[2].estimated_start_us = kNow + 60'000'000;
  const WhyAnswer answer = ExplainJob(Record("3"), &picture, kNow);
  EXPECT_EQ(Facts(answer),
            "3 jobs are ahead in 'short', asking for 6 GPUs\n"
            "partition 'short': 1 of 8 GPUs free\n"
            "it needs 1 node with 2 GPUs and 2 CPUs free; 0 have that now, 2 could");
  EXPECT_EQ(answer.jobs_ahead, 3);
  EXPECT_EQ(answer.estimated_start_us, kNow + 60'000'000);
}

TEST(Why, JobsThatItWaitsForAreNamedWithTheirState) {
  ClusterPicture picture = Picture();
  picture.jobs = {Running("5", "bob", 1), Job("6", "bob", 1), Job("7", "alice", 1, WaitKind::kDependency)};
  picture.jobs[0].id = "20260101-aaaa";
  picture.jobs[2].dependency = "afterok:5(unfulfilled),afterany:6(unfulfilled),after:9(failed)";
  EXPECT_EQ(Facts(ExplainJob(Record("7"), &picture, kNow)),
            "job 20260101-aaaa must succeed first; it is running, of bob\n"
            "job 6 must end first; it is waiting, of bob (in plain words)\n"
            "job 9 must start first, and it did not");
}

TEST(Why, WhoHeldItCanReleaseIt) {
  ClusterPicture picture = Picture();
  picture.jobs = {Job("7", "alice", 1, WaitKind::kHeld)};
  EXPECT_EQ(Sooner(ExplainJob(Record("7", JobState::kHeld), &picture, kNow)), "overcap release 7");
  picture.jobs[0].reason = "JobHeldAdmin";
  EXPECT_EQ(Sooner(ExplainJob(Record("7", JobState::kHeld), &picture, kNow)),
            "ask an administrator to release it");
}

TEST(Why, WhatCanNeverBeHadIsTold) {
  ClusterPicture picture = Picture();
  picture.jobs = {Job("7", "alice", 8, WaitKind::kNever)};
  picture.jobs[0].time_limit_s = 2 * 86400;
  picture.jobs[0].features = "nvme";
  const WhyAnswer answer = ExplainJob(Record("7"), &picture, kNow);
  EXPECT_EQ(answer.text, "in plain words: it never starts as it is");
  EXPECT_EQ(Facts(answer),
            "it needs 1 node with 8 GPUs, 8 CPUs; partition 'short' has 0\n"
            "partition 'short' allows at most 1d, it asks for 2d");
  picture.jobs[0].gpus = 1;
  EXPECT_EQ(ExplainJob(Record("7"), &picture, kNow).facts[0],
            "it needs 1 node with 1 GPU, 8 CPUs and the features 'nvme'; partition 'short' has 0");
}

TEST(Why, NodesThatAreAwayAreNamed) {
  ClusterPicture picture = Picture();
  picture.nodes[1].usable = false, picture.nodes[1].state = "down*", picture.nodes[1].reason = "disk";
  picture.nodes[1].gpus_used = {{"a40", 1}};
  picture.jobs = {Job("7", "alice", 1, WaitKind::kNodes)};
  const WhyAnswer answer = ExplainJob(Record("7"), &picture, kNow);
  EXPECT_EQ(answer.facts[0], "node 'n2' is down*: disk");
  EXPECT_EQ(answer.facts[1], "partition 'short': 0 of 8 GPUs free, 3 on nodes that take no jobs");
}

TEST(Why, AJobThatRunsOrHasEndedDoesNotWait) {
  ClusterPicture picture = Picture();
  picture.jobs = {Running("7", "alice", 1)};
  JobRecord record = Record("7", JobState::kRunning);
  record.started_us = kNow - 20'000'000;
  picture.jobs[0].time_limit_s = 60;
  const WhyAnswer answer = ExplainJob(record, &picture, kNow);
  EXPECT_EQ(answer.text, "it is running, for 20s");
  EXPECT_EQ(Facts(answer), "on n1\nits time limit ends it in 40s");
  record.state = JobState::kFailed, record.exit_status = 3, record.ended_us = kNow,
  record.reason = "out of memory";
  EXPECT_EQ(ExplainJob(record, nullptr, kNow).text, "it has ended: failed, exit status 3");
  EXPECT_EQ(ExplainJob(record, nullptr, kNow).facts[0], "out of memory");
}

TEST(Why, WithoutAPictureTheRecordsReasonIsTold) {
  JobRecord record = Record("7");
  record.reason = "waits for 1 GPU; 2 jobs ahead";
  EXPECT_EQ(ExplainJob(record, nullptr, kNow).text, "waits for 1 GPU; 2 jobs ahead");
  EXPECT_EQ(Sooner(ExplainJob(Record("7", JobState::kHeld), nullptr, kNow)), "overcap release 7");
}

TEST(Why, ItsJsonHasTheNumbersAndWithoutAForecastAnEmptySooner) {
  ClusterPicture picture = Picture();
  picture.nodes[1].gpus_used = {{"a40", 0}};
  picture.jobs = {Running("2", "alice", 3), Job("3", "alice", 2, WaitKind::kLimit)};
  picture.jobs[1].cap_of = CapOf::kLab, picture.jobs[1].cap_thing = CapThing::kGpus;
  const JobRecord record = Record("3");
  const auto json = nlohmann::json::parse(WhyToJson(record, ExplainJob(record, &picture, kNow)));
  EXPECT_EQ(json["state"], "queued");
  EXPECT_EQ(json["cap"]["cap"], 4);
  EXPECT_EQ(json["cap"]["by"]["alice"], 3);
  EXPECT_TRUE(json["estimated_start"].is_null());
  EXPECT_EQ(json["sooner"], nlohmann::json::array());
}

}  // namespace
}  // namespace overcap
