// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/node_kinds.h"

#include <gtest/gtest.h>

#include "clusters/slurm/job_planner.h"

namespace overcap {
namespace {

SlurmNode Node(std::string name, std::string type, int gpus, std::vector<std::string> features = {}) {
  SlurmNode node;
  node.name = std::move(name);
  node.cpus = 16;
  node.state.takes_jobs = true;
  if (gpus > 0) node.gpus = {SlurmNodeGpus{std::move(type), gpus, 1}};
  node.features = std::move(features);
  return node;
}

Resources Ask(int gpus, int nodes = 1, std::string type = "") {
  Resources asked;
  asked.gpus = gpus, asked.nodes = nodes, asked.gpu_type = std::move(type);
  return asked;
}

std::string Refusal(const Resources& asked, const std::vector<SlurmNode>& nodes) {
  const auto fits = CheckFitsNodes(asked, nodes);
  return fits ? "" : fits.error().message;
}

TEST(NodeKinds, WhatFitsFits) {
  const std::vector<SlurmNode> nodes = {Node("n1", "a40", 4), Node("n2", "a40", 4), Node("n3", "t4", 2)};
  EXPECT_EQ(Refusal(Ask(4), nodes), "");
  EXPECT_EQ(Refusal(Ask(8, 2), nodes), "");
  EXPECT_EQ(Refusal(Ask(3, 2), nodes), "");
  EXPECT_EQ(Refusal(Ask(2, 1, "t4"), nodes), "");
  EXPECT_EQ(Refusal(Ask(99), {}), "") << "nothing is known";
}

TEST(NodeKinds, WhatCanNeverBeHadIsRefusedWithTheNumbers) {
  const std::vector<SlurmNode> nodes = {Node("n1", "a40", 4), Node("n2", "a40", 4), Node("n3", "t4", 2)};
  EXPECT_EQ(Refusal(Ask(1000), nodes), "asks for 1000 GPUs, the cluster has 10");
  EXPECT_EQ(Refusal(Ask(5), nodes), "asks for 5 GPUs, a node has at most 4");
  EXPECT_EQ(Refusal(Ask(3, 1, "t4"), nodes), "asks for 3 GPUs of type 't4', the cluster has 2");
  EXPECT_EQ(Refusal(Ask(1, 1, "h100"), nodes), "asks for 1 GPU of type 'h100', the cluster has none");
  EXPECT_EQ(Refusal(Ask(9, 3), nodes), "asks for 3 nodes with 3 GPUs each, the cluster has 2");
  EXPECT_EQ(Refusal(Ask(0, 4), {nodes}), "asks for 4 nodes, the cluster has 3");
}

TEST(NodeKinds, ATypeIsAFeatureOnlyWhereEveryNodeOfItSaysSo) {
  const std::vector<SlurmNode> some = {Node("n1", "a40", 4, {"A40", "big"}), Node("n2", "a40", 4)};
  EXPECT_EQ(GpuTypesOf(some)[0].feature, "");
  const std::vector<SlurmNode> all = {Node("n1", "a40", 4, {"A40", "big"}), Node("n2", "a40", 4, {"A40"})};
  ASSERT_EQ(GpuTypesOf(all).size(), 1u);
  EXPECT_EQ(GpuTypesOf(all)[0].gres, "a40");
  EXPECT_EQ(GpuTypesOf(all)[0].feature, "A40");
  const auto untyped = GpuTypesOf({Node("n1", "", 4, {"v100", "big"})});
  ASSERT_EQ(untyped.size(), 2u);
  EXPECT_EQ(untyped[0].gres, "");
  EXPECT_EQ(untyped[0].feature, "v100");
}

TEST(NodeKinds, NodesThatAreAlikeAreOneKind) {
  const std::vector<SlurmNode> nodes = {Node("n1", "a40", 8), Node("n2", "", 0), Node("n3", "a40", 8)};
  const std::vector<NodeKind> kinds = KindsOf(nodes);
  ASSERT_EQ(kinds.size(), 2u);
  EXPECT_EQ(kinds[0].names, (std::vector<std::string>{"n1", "n3"}));
  EXPECT_EQ(kinds[0].machine.gpus[3].type, "a40");
  EXPECT_EQ(kinds[1].names, std::vector<std::string>{"n2"});
  EXPECT_TRUE(KindsOf({}).empty());
  EXPECT_EQ(InfoOf(nodes[0]).gpus_free, 7);
}

TEST(WarnSeconds, AJobThatGoesOnAfterItsLimitIsWarnedInTime) {
  JobSpec spec;
  EXPECT_EQ(WarnSeconds(spec), 0);
  spec.requeue_on_timeout = true;
  EXPECT_EQ(WarnSeconds(spec), 60);
  spec.resources.time_seconds = 300;
  EXPECT_EQ(WarnSeconds(spec), 30);
  spec.resources.time_seconds = 60;
  EXPECT_EQ(WarnSeconds(spec), 10);
  spec.warn_seconds = 45;
  EXPECT_EQ(WarnSeconds(spec), 45);
}

}  // namespace
}  // namespace overcap
