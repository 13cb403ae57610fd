// SPDX-License-Identifier: Apache-2.0
#include "control/usage.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "control/nodes_table.h"

namespace overcap {
namespace {

PictureJob Job(std::string user, std::string lab, int gpus, bool runs, bool overcap = false) {
  PictureJob job;
  job.user = std::move(user), job.lab = std::move(lab), job.gpus = gpus, job.cpus = gpus,
  job.overcap = overcap;
  if (runs) job.nodes = {"n1"}, job.gpu_types = {{"a40", gpus}};
  return job;
}

ClusterPicture Picture() {
  ClusterPicture picture;
  PictureNode node;
  node.name = "n1", node.state = "mixed", node.cpus = 16, node.cpus_used = 7;
  node.gpus = {{"a40", 8}}, node.gpus_used = {{"a40", 7}};
  node.mem_bytes = int64_t{16} << 30, node.mem_used = int64_t{3} << 29, node.load = 1.25;
  node.users = {"alice", "bob"};
  picture.nodes = {node, node};
  picture.nodes[1].name = "n2", picture.nodes[1].usable = false, picture.nodes[1].state = "down*";
  picture.nodes[1].reason = "disk", picture.nodes[1].gpus_used.clear();
  picture.labs = {{.name = "root"},
                  {.name = "vision", .parent = "root", .gpu_cap = 4},
                  {.name = "speech", .parent = "root", .gpu_cap = 8}};
  picture.jobs = {Job("alice", "vision", 2, true), Job("bob", "vision", 2, true),
                  Job("bob", "vision", 3, true, true), Job("alice", "vision", 1, false)};
  picture.jobs[3].tasks = 5, picture.jobs[3].wait = WaitKind::kLimit;
  picture.taken_us = 1'000'000;
  return picture;
}

TEST(Usage, LabsShowWhatTheyUseOfTheirCap) {
  const auto report = MakeUsage(Picture(), "");
  ASSERT_TRUE(report);
  ASSERT_EQ(report->labs.size(), 2u);
  EXPECT_EQ(report->labs[0].name, "vision");
  EXPECT_EQ(report->labs[0].use.gpus, 4);
  EXPECT_EQ(report->labs[0].gpu_cap, 4);
  EXPECT_EQ(report->labs[0].use.overcap_gpus, 3);
  EXPECT_EQ(report->labs[0].use.waiting_gpus, 5);
  EXPECT_EQ(report->labs[0].use.capped_gpus, 5);
  EXPECT_EQ(report->labs[1].name, "speech");
  EXPECT_EQ(report->gpus, 16);
  EXPECT_EQ(report->gpus_free, 1);
  EXPECT_EQ(report->gpus_away, 8);
}

TEST(Usage, UsersWithMostComeFirst) {
  const auto report = MakeUsage(Picture(), "vision");
  ASSERT_TRUE(report);
  ASSERT_EQ(report->users.size(), 2u);
  EXPECT_EQ(report->users[0].name, "bob");
  EXPECT_EQ(report->users[0].use.gpus, 2);
  EXPECT_EQ(report->users[0].use.overcap_gpus, 3);
  EXPECT_EQ(report->users[1].use.waiting_jobs, 5);
  EXPECT_EQ(report->labs.size(), 1u);
  EXPECT_EQ(MakeUsage(Picture(), "speech")->users.size(), 0u);
}

TEST(Usage, TypesShowWhatIsUsedFreeAndAway) {
  const auto report = MakeUsage(Picture(), "");
  ASSERT_EQ(report->types.size(), 2u);  // and GPUs of waiting jobs that named no type
  const UsageType& a40 = report->types[1];
  EXPECT_EQ(a40.type, "a40");
  EXPECT_EQ(a40.used, 7);
  EXPECT_EQ(a40.overcap, 3);
  EXPECT_EQ(a40.free, 1);
  EXPECT_EQ(a40.away, 8);
  EXPECT_EQ(a40.total, 16);
  EXPECT_EQ(report->types[0].waiting, 5);
}

TEST(Usage, WhatIsUsedFreeAndAwayMakeUpAllGpusWhateverTheQueueSays) {
  ClusterPicture picture = Picture();
  picture.nodes[1].gpus_used = {{"a40", 2}};  // drained, and a job still runs there
  for (const bool queue : {true, false}) {
    if (!queue) picture.jobs.clear();
    const auto report = MakeUsage(picture, "");
    const UsageType& a40 = report->types.back();
    EXPECT_EQ(a40.used, 9);
    EXPECT_EQ(a40.free, 1);
    EXPECT_EQ(a40.away, 6);
    EXPECT_EQ(report->gpus_used + report->gpus_free + report->gpus_away, report->gpus);
    EXPECT_EQ(MakeUsage(picture, "vision")->types.back().used, queue ? 7 : 0);
  }
}

TEST(Usage, AnUnknownLabIsNotFoundWithTheNearest) {
  const auto report = MakeUsage(Picture(), "visoin");
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(report.error().hint, "did you mean 'vision'?");
  EXPECT_EQ(MakeUsage(ClusterPicture{}, "x").error().hint, "this cluster keeps no accounts");
}

TEST(Usage, ItsJsonHasEverything) {
  ClusterPicture picture = Picture();
  picture.stale = "the controller does not answer";
  const auto json = nlohmann::json::parse(UsageToJson(*MakeUsage(picture, ""), picture, 4'500'000));
  EXPECT_EQ(json["age_s"], 3.5);
  EXPECT_EQ(json["stale"], "the controller does not answer");
  EXPECT_EQ(json["total"]["gpus"], 4);
  EXPECT_EQ(json["labs"][0]["gpu_cap"], 4);
  EXPECT_TRUE(json["labs"][0]["cpu_cap"].is_null());
  EXPECT_EQ(json["users"][0]["types"]["a40"], 5);
}

TEST(Nodes, CellsSayWhatIsUsedOfHowMuch) {
  const ClusterPicture picture = Picture();
  const NodeCells cells = CellsOf(picture.nodes[0]);
  EXPECT_EQ(cells.gpus, "7/8 a40");
  EXPECT_EQ(cells.cpus, "7/16");
  EXPECT_EQ(cells.load, "1.2");
  EXPECT_EQ(cells.memory, "1.5/16.0G");
  EXPECT_EQ(cells.users, "alice, bob");
  EXPECT_EQ(NodesSummary(picture), "2 nodes, 1 takes no jobs; 16 GPUs, 1 free, 8 on nodes that take no jobs");
}

TEST(Nodes, TheirJsonHasEverything) {
  const auto json = nlohmann::json::parse(NodesToJson(Picture(), 2'000'000));
  ASSERT_EQ(json["nodes"].size(), 2u);
  EXPECT_EQ(json["nodes"][0]["gpus"][0]["count"], 8);
  EXPECT_EQ(json["nodes"][0]["load"], 1.25);
  EXPECT_EQ(json["nodes"][1]["usable"], false);
  EXPECT_EQ(json["nodes"][1]["reason"], "disk");
}

}  // namespace
}  // namespace overcap
