// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/slurm_picture.h"

#include <gtest/gtest.h>

#include "model/picture_use.h"

namespace overcap {
namespace {

SlurmPartition Partition(std::string name, int tier, std::string mode = "OFF", std::string qos = "") {
  SlurmPartition partition;
  partition.name = std::move(name);
  partition.priority_tier = tier;
  partition.preempt_mode = std::move(mode);
  partition.qos = std::move(qos);
  return partition;
}

SlurmNode Node(std::string name, std::vector<SlurmNodeGpus> gpus) {
  SlurmNode node;
  node.name = std::move(name);
  node.partitions = {"short", "overcap"};
  node.raw_state = "mixed";
  node.state = ReadNodeState("mixed");
  node.cpus = 16;
  node.gpus = std::move(gpus);
  return node;
}

SqueueJob Job(int64_t id, std::string state, std::string nodes, int gpus) {
  SqueueJob job;
  job.job_id = id;
  job.user = "alice", job.account = "vision", job.partition = "short";
  job.raw_state = std::move(state), job.node_list = std::move(nodes);
  job.raw_reason = job.node_list.empty() ? "Resources" : "None";
  job.tres.gpus = gpus, job.tres.cpus = 2;
  job.nodes = 1;
  return job;
}

SlurmFacts Facts() {
  SlurmFacts facts;
  facts.partitions = {Partition("short", 10), Partition("overcap", 1, "REQUEUE")};
  facts.nodes.nodes = {Node("n1", {{"a40", 4, 2}}), Node("n2", {{"a40", 2, 0}, {"t4", 2, 1}})};
  return facts;
}

std::vector<std::string> OvercapOf(const ClusterPicture& picture) {
  std::vector<std::string> names;
  for (const PicturePartition& one : picture.partitions) {
    if (one.overcap) names.push_back(one.name);
  }
  return names;
}

TEST(SlurmPicture, OvercapPartitionsAreThoseOfTheConfigurationElseByNameElsePreemptable) {
  SlurmFacts facts = Facts();
  EXPECT_EQ(OvercapOf(MakeSlurmPicture(facts)), std::vector<std::string>{"overcap"});
  facts.overcap_partitions = {"short"};
  EXPECT_EQ(OvercapOf(MakeSlurmPicture(facts)), std::vector<std::string>{"short"});
  facts.overcap_partitions.clear();
  facts.partitions[1].name = "scavenger";
  EXPECT_EQ(OvercapOf(MakeSlurmPicture(facts)), std::vector<std::string>{"scavenger"});
  facts.partitions[1].priority_tier = 10;
  EXPECT_TRUE(OvercapOf(MakeSlurmPicture(facts)).empty());
  facts.partitions[1].qos = "low";
  facts.qos = {{.name = "high", .preempts = {"low"}}};
  EXPECT_EQ(OvercapOf(MakeSlurmPicture(facts)), std::vector<std::string>{"scavenger"});
}

TEST(SlurmPicture, WhatSinfoSaysOfAPartitionCountsMore) {
  SlurmFacts facts = Facts();
  facts.partitions[0].up = false, facts.partitions[1].up = false;
  facts.nodes.partition_up = {{"short", true}};
  const ClusterPicture picture = MakeSlurmPicture(facts);
  EXPECT_TRUE(picture.partitions[0].up);
  EXPECT_FALSE(picture.partitions[1].up);
}

TEST(SlurmPicture, ALabsCapMayBeThatOfTheQosCalledAsItsAccount) {
  SlurmFacts facts = Facts();
  facts.associations = {{.account = "vision", .parent = "root"}};
  facts.qos = {{.name = "vision", .cap = {.gpus = 4, .cpus = {}, .gpu_types = {{"a40", 3}}}},
               {.name = "overcap"}};
  facts.jobs = {Job(1, "RUNNING", "n1", 1), Job(2, "RUNNING", "n1", 2), Job(3, "RUNNING", "n2", 1)};
  facts.jobs[0].qos = "vision", facts.jobs[1].qos = "overcap", facts.jobs[2].qos = "vision-user-overcap";
  const ClusterPicture picture = MakeSlurmPicture(facts);
  ASSERT_EQ(picture.labs.size(), 1u);
  EXPECT_EQ(picture.labs[0].gpu_cap, 4);
  EXPECT_EQ(picture.labs[0].gpu_caps, (std::vector<TypedGpus>{{"a40", 3}}));
  EXPECT_EQ(LabUse(picture, "vision").gpus, 1);
  EXPECT_EQ(LabUse(picture, "vision").overcap_gpus, 3);
}

TEST(SlurmPicture, JobsOfAPartitionWithTheLabsQosCountAgainstItsCap) {
  SlurmFacts facts = Facts();
  facts.partitions.push_back(Partition("vision", 10, "OFF", "vision"));
  facts.associations = {{.account = "vision", .parent = "root"}};
  facts.qos = {{.name = "vision", .cap = {.gpus = 4, .cpus = {}, .gpu_types = {}}}, {.name = "short"}};
  facts.jobs = {Job(1, "RUNNING", "n1", 1), Job(2, "RUNNING", "n1", 2)};
  facts.jobs[0].partition = "vision", facts.jobs[0].qos = "short";
  facts.jobs[1].partition = "overcap", facts.jobs[1].qos = "short";
  const ClusterPicture picture = MakeSlurmPicture(facts);
  EXPECT_EQ(LabUse(picture, "vision").gpus, 1);
  EXPECT_EQ(LabUse(picture, "vision").overcap_gpus, 2);
}

// As `policy apply` sets it up.
SlurmFacts PolicyFacts() {
  SlurmFacts facts = Facts();
  facts.partitions = {Partition("short", 30), Partition("user-overcap", 10), Partition("overcap", 1)};
  facts.partitions[0].allowed_accounts = facts.partitions[1].allowed_accounts = {"vision"};
  facts.partitions[0].allowed_qos = {"vision", "vision-user-overcap"};
  facts.partitions[1].allowed_qos = {"vision-user-overcap"};
  facts.partitions[2].allowed_accounts = {"vision-overcap"}, facts.partitions[2].allowed_qos = {"overcap"};
  const SlurmCap cap = {.gpus = 4, .cpus = {}, .gpu_types = {{"a40", 3}}};
  facts.associations = {{.account = "root"},
                        {.account = "vision-lab", .parent = "root"},
                        {.account = "vision", .parent = "vision-lab", .cap = cap},
                        {.account = "vision", .user = "alice"},
                        {.account = "vision-overcap", .parent = "vision-lab"},
                        {.account = "vision-overcap", .user = "alice"}};
  facts.qos = {{.name = "vision", .preempts = {"overcap", "vision-user-overcap"}, .cap = cap},
               {.name = "vision-user-overcap", .preempts = {"overcap"}},
               {.name = "overcap"}};
  facts.users = {{"alice", "vision"}};
  facts.jobs = {Job(1, "RUNNING", "n1", 1), Job(2, "RUNNING", "n1", 2), Job(3, "RUNNING", "n2", 3)};
  facts.jobs[0].qos = "vision", facts.jobs[1].qos = "overcap", facts.jobs[2].qos = "vision-user-overcap";
  facts.jobs[1].account = "vision-overcap";
  return facts;
}

// `policy apply` sets PreemptMode=REQUEUE for the whole cluster, and each partition shows it.
TEST(SlurmPicture, WherePreemptionGoesByQosTheTierOfAPartitionDoesNotMatter) {
  SlurmFacts facts = PolicyFacts();
  for (SlurmPartition& one : facts.partitions) one.preempt_mode = "REQUEUE";
  facts.partitions.push_back(Partition("debug", 40));
  const auto preemptable = [&](const char* type) {
    facts.preempt_type = type;
    std::string names;
    for (const PicturePartition& one : MakeSlurmPicture(facts).partitions)
      names += one.preemptable ? one.name + " " : "";
    return names;
  };
  EXPECT_EQ(preemptable("preempt/qos"), "user-overcap overcap ");
  EXPECT_EQ(preemptable("preempt/partition_prio"), "short user-overcap overcap ");
}

TEST(SlurmPicture, TheAccountsOfALabAreOneLab) {
  const ClusterPicture picture = MakeSlurmPicture(PolicyFacts());
  ASSERT_EQ(picture.labs.size(), 2u);
  EXPECT_EQ(picture.labs[0].name, "root");
  EXPECT_EQ(picture.labs[1].name, "vision");
  EXPECT_EQ(picture.labs[1].parent, "root");
  EXPECT_EQ(picture.labs[1].gpu_cap, 4);
  EXPECT_EQ(picture.labs[1].users, std::vector<std::string>{"alice"});
  EXPECT_EQ(DefaultLab(picture, "alice"), "vision");
  const PictureUse use = LabUse(picture, "vision");
  EXPECT_EQ(use.gpus, 4);
  EXPECT_EQ(use.yielding_gpus, 3);
  EXPECT_EQ(use.overcap_gpus, 2);
  EXPECT_EQ(GpusInTheWay(use, false), 1);
  EXPECT_EQ(GpusInTheWay(use, true), 4);
  EXPECT_EQ(LabUse(picture, "root").gpus, 4);
}

TEST(SlurmPicture, PartitionsAreToldByTheAccountsAndQosThatTheyTake) {
  SlurmFacts facts = PolicyFacts();
  ClusterPicture picture = MakeSlurmPicture(facts);
  EXPECT_EQ(OvercapOf(picture), std::vector<std::string>{"overcap"});
  EXPECT_TRUE(picture.partitions[1].yields);
  EXPECT_FALSE(picture.partitions[0].yields || picture.partitions[2].yields);
  EXPECT_EQ(picture.partitions[2].allowed_labs, std::vector<std::string>{"vision"});
  facts.associations[4].parent = "root";  // an account that is only called so
  picture = MakeSlurmPicture(facts);
  EXPECT_EQ(picture.labs.size(), 4u);
  EXPECT_EQ(picture.jobs[1].lab, "vision-overcap");
}

TEST(SlurmPicture, WithoutSuchPartitionsAPreemptableQosIsOverTheCap) {
  SlurmFacts facts = Facts();
  facts.partitions = {Partition("short", 10)};
  facts.qos = {{.name = "high", .preempts = {"low"}}};
  facts.jobs = {Job(1, "RUNNING", "n1", 1), Job(2, "RUNNING", "n1", 1)};
  facts.jobs[0].qos = "low", facts.jobs[1].qos = "high";
  const ClusterPicture picture = MakeSlurmPicture(facts);
  EXPECT_TRUE(picture.jobs[0].overcap);
  EXPECT_FALSE(picture.jobs[1].overcap);
}

TEST(SlurmPicture, WaitingTasksOfAnArrayAreCounted) {
  SlurmFacts facts = Facts();
  facts.jobs = {Job(7, "PENDING", "", 2)};
  facts.jobs[0].array_job_id = 7, facts.jobs[0].array_tasks = "0-1,4-9%2";
  const ClusterPicture picture = MakeSlurmPicture(facts);
  EXPECT_EQ(picture.jobs[0].tasks, 8);
  EXPECT_EQ(picture.jobs[0].native_id, "7_[0-1,4-9%2]");
  EXPECT_EQ(UseOf(picture, [](const PictureJob&) { return true; }).waiting_gpus, 16);
}

TEST(SlurmPicture, TheNodesTellTheTypeWhereTheJobDoesNot) {
  SlurmFacts facts = Facts();
  facts.jobs = {Job(1, "RUNNING", "n1", 2), Job(2, "RUNNING", "n2", 1), Job(3, "RUNNING", "n[1-2]", 2)};
  const ClusterPicture picture = MakeSlurmPicture(facts);
  EXPECT_EQ(picture.jobs[0].gpu_types, (std::vector<TypedGpus>{{"a40", 2}}));
  EXPECT_TRUE(picture.jobs[1].gpu_types.empty());
  EXPECT_TRUE(picture.jobs[2].gpu_types.empty());
  EXPECT_EQ(picture.nodes[0].users, std::vector<std::string>{"alice"});
}

TEST(SlurmPicture, EndedJobsAreLeftOutAndAWaitingOneHasItsReason) {
  SlurmFacts facts = Facts();
  facts.jobs = {Job(1, "COMPLETED", "n1", 2), Job(2, "PENDING", "", 1), Job(3, "PENDING", "", 1)};
  facts.jobs[1].raw_reason = "AssocGrpGRES";
  facts.jobs[2].partition = "short,overcap";
  const ClusterPicture picture = MakeSlurmPicture(facts);
  ASSERT_EQ(picture.jobs.size(), 2u);
  EXPECT_EQ(picture.jobs[0].wait, WaitKind::kLimit);
  EXPECT_EQ(picture.jobs[0].cap_of, CapOf::kLab);
  EXPECT_EQ(picture.jobs[0].cap_thing, CapThing::kGpus);
  EXPECT_EQ(picture.jobs[1].wait, WaitKind::kTurn);
  EXPECT_FALSE(picture.jobs[1].overcap);
}

TEST(SlurmPicture, PartitionsCountTheirNodesAndGpus) {
  SlurmFacts facts = Facts();
  facts.nodes.nodes[1].state = ReadNodeState("down*");
  const ClusterPicture picture = MakeSlurmPicture(facts);
  EXPECT_EQ(picture.partitions[0].gpus_total, 8);
  EXPECT_EQ(picture.partitions[0].gpus_free, 2);
  EXPECT_EQ(picture.partitions[0].nodes, 2);
  EXPECT_EQ(picture.partitions[0].nodes_usable, 1);
  EXPECT_TRUE(picture.nodes[1].down);
}

TEST(SlurmPicture, LabsHaveTheirMembersOnce) {
  SlurmFacts facts = Facts();
  SlurmAssociation lab, alice, again;
  lab.account = "vision", lab.parent = "root", lab.cap.gpus = 8;
  alice.account = "vision", alice.user = "alice";
  again = alice, again.partition = "short";
  facts.associations = {lab, alice, again};
  facts.users = {{"alice", "vision"}};
  const ClusterPicture picture = MakeSlurmPicture(facts);
  ASSERT_EQ(picture.labs.size(), 1u);
  EXPECT_EQ(picture.labs[0].users, std::vector<std::string>{"alice"});
  EXPECT_EQ(picture.labs[0].gpu_cap, 8);
  EXPECT_EQ(DefaultLab(picture, "alice"), "vision");
  EXPECT_EQ(DefaultLab(picture, "bob"), "");
}

TEST(SlurmPicture, CapsAreToldByTheWordOfTheReason) {
  EXPECT_EQ(CapOfReason("AssocGrpGRES"), CapOf::kLab);
  EXPECT_EQ(CapOfReason("QOSGrpGRES"), CapOf::kQos);
  EXPECT_EQ(CapOfReason("QOSMaxGRESPerUser"), CapOf::kUserInQos);
  EXPECT_EQ(CapOfReason("QOSMaxJobsPerUserLimit"), CapOf::kUserInQos);
  EXPECT_EQ(CapOfReason("Priority"), CapOf::kNone);
  EXPECT_EQ(CapThingOfReason("AssocGrpCpuLimit"), CapThing::kCpus);
  EXPECT_EQ(CapThingOfReason("QOSMaxJobsPerUserLimit"), CapThing::kJobs);
  EXPECT_EQ(CapThingOfReason("AssocGrpMemLimit"), CapThing::kOther);
}

}  // namespace
}  // namespace overcap
