// SPDX-License-Identifier: Apache-2.0
#include "model/picture_fit.h"

#include <gtest/gtest.h>

#include "model/picture_use.h"

namespace overcap {
namespace {

PictureNode Node(std::string name, std::vector<TypedGpus> gpus, std::vector<TypedGpus> used) {
  PictureNode node;
  node.name = std::move(name);
  node.partitions = {"short"};
  node.cpus = 16;
  node.gpus = std::move(gpus), node.gpus_used = std::move(used);
  return node;
}

TEST(PictureFit, GpusAreCountedByTypeAndTheNodeMayTellItByAFeature) {
  PictureNode node = Node("n1", {{"a40", 4}, {"t4", 2}}, {{"a40", 1}});
  EXPECT_EQ(GpusOfType(node, ""), 6);
  EXPECT_EQ(GpusOfType(node, "a40"), 4);
  EXPECT_EQ(FreeGpusOfType(node, "a40|t4"), 5);
  EXPECT_EQ(GpusOfType(node, "h100"), 0);
  node.features = {"h100"};
  EXPECT_EQ(GpusOfType(node, "h100"), 6);
  node.usable = false;
  EXPECT_EQ(FreeGpusOfType(node, "a40"), 0);
}

TEST(PictureFit, NodesAreCountedNowWhenEmptyAndWhenBack) {
  ClusterPicture picture;
  picture.nodes = {Node("n1", {{"a40", 4}}, {{"a40", 0}}), Node("n2", {{"a40", 4}}, {{"a40", 3}}),
                   Node("n3", {{"a40", 4}}, {{"a40", 0}}), Node("n4", {{"a40", 2}}, {{"a40", 0}})};
  picture.nodes[2].usable = false;
  PictureNeed need;
  need.gpus = 3, need.cpus = 8;
  const NodeFit fit = CountFits(picture, "short", need);
  EXPECT_EQ(fit.now, 1);
  EXPECT_EQ(fit.up, 2);
  EXPECT_EQ(fit.ever, 3);
  EXPECT_EQ(CountFits(picture, "other", need).ever, 0);
  const GpuRoom room = GpuRoomOf(picture, "short", "");
  EXPECT_EQ(room.total, 14);
  EXPECT_EQ(room.free, 7);
  EXPECT_EQ(room.away, 4);
}

TEST(PictureFit, SimpleFeaturesAreUnderstood) {
  const std::vector<std::string> has = {"a40", "ib"};
  EXPECT_TRUE(FeaturesMatch(has, ""));
  EXPECT_TRUE(FeaturesMatch(has, "a40&ib"));
  EXPECT_TRUE(FeaturesMatch(has, "t4|a40"));
  EXPECT_FALSE(FeaturesMatch(has, "a40,nvme"));
  EXPECT_TRUE(FeaturesMatch(has, "[rack1*2&rack2*4]"));  // more than is understood here
}

TEST(PictureUse, WhatRunsWaitsAndIsCappedIsCountedApart) {
  PictureUse use;
  PictureJob job;
  job.gpus = 2, job.cpus = 4, job.nodes = {"n1"}, job.gpu_types = {{"a40", 1}};
  AddUse(job, &use);
  job.overcap = true;
  AddUse(job, &use);
  job.nodes.clear(), job.tasks = 3, job.wait = WaitKind::kLimit;
  AddUse(job, &use);
  EXPECT_EQ(use, (PictureUse{1, 2, 4, 1, 2, 4, 3, 6, 12, 3, 6, {{"", 2}, {"a40", 2}}}));
}

TEST(PictureUse, JobsOfALabBelowCountForTheOneAboveIt) {
  ClusterPicture picture;
  picture.labs = {{.name = "root"},
                  {.name = "vision", .parent = "root", .gpu_cap = 8},
                  {.name = "sub", .parent = "vision"}};
  PictureJob job;
  job.gpus = 2, job.nodes = {"n1"}, job.lab = "sub";
  picture.jobs = {job};
  EXPECT_EQ(LabUse(picture, "vision").gpus, 2);
  EXPECT_EQ(LabUse(picture, "sub").gpus, 2);
  ASSERT_NE(CappedLab(picture, "sub"), nullptr);
  EXPECT_EQ(CappedLab(picture, "sub")->name, "vision");
  picture.labs[1].parent = "sub";  // a ring
  picture.labs[1].gpu_cap.reset();
  EXPECT_EQ(CappedLab(picture, "sub"), nullptr);
  EXPECT_FALSE(LabIsWithin(picture, "sub", "other"));
}

}  // namespace
}  // namespace overcap
