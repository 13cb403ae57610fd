// SPDX-License-Identifier: Apache-2.0
#include "clusters/fake/fake_cluster.h"

#include <gtest/gtest.h>

#include "clusters/fake/fake_program.h"
#include "clusters/testing/cluster_conformance.h"

namespace overcap {
namespace {

Machine TwoGpus() {
  return {.host = "fake",
          .cpus = 8,
          .mem_bytes = 16LL << 30,
          .gpus = {{.index = 0, .type = "a40", .uuid = {}}, {.index = 1, .type = "a40", .uuid = {}}}};
}

std::unique_ptr<Cluster> MakeFake(std::string*) {
  return std::make_unique<FakeCluster>("fake", TwoGpus());
}

INSTANTIATE_TEST_SUITE_P(Fake, ClusterConformance, testing::Values(ClusterMaker{"fake", MakeFake}),
                         [](const auto& test) { return test.param.name; });

JobSpec Spec(const std::string& id, std::vector<std::string> command) {
  JobSpec spec;
  spec.id = id;
  spec.command = std::move(command);
  return spec;
}

TEST(FakeCluster, AJobEndsWhenTimeHasPassed) {
  FakeCluster cluster("fake", TwoGpus());
  ASSERT_TRUE(cluster.Submit({Spec("a_1_00000001", {"sleep", "30"}), ""}));
  cluster.clock().Advance(29'000'000);
  EXPECT_EQ(cluster.Query({"a_1_00000001"})->front().state, JobState::kRunning);
  cluster.clock().Advance(30'000'000);
  EXPECT_EQ(cluster.Query({"a_1_00000001"})->front().state, JobState::kSucceeded);
}

TEST(FakeCluster, ALostReplyLeavesTheJob) {
  FakeCluster cluster("fake", TwoGpus());
  cluster.FailNextSubmit({ErrorCode::kUnavailable, "gone", ""}, true);
  EXPECT_FALSE(cluster.Submit({Spec("a_1_00000001", {"true"}), ""}));
  EXPECT_EQ(cluster.List({})->size(), 1u);
}

TEST(FakeProgram, RunsTheStepsOfAScriptOneAfterTheOther) {
  const FakeProgram program = FakeProgramOf({"sh", "-c", "sleep 3; sleep 4; exit 9"});
  EXPECT_EQ(program.seconds, 7);
  EXPECT_EQ(program.exit_status, 9);
}

TEST(FakeProgram, ASignalIsPartOfTheStatus) {
  EXPECT_EQ(FakeProgramOf({"kill", "9"}).exit_status, 137);
  EXPECT_EQ(FakeProgramOf({"kill", "9"}).signal, 9);
}

}  // namespace
}  // namespace overcap
