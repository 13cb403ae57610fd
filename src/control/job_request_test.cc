// SPDX-License-Identifier: Apache-2.0
#include "control/job_request.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

namespace overcap {
namespace {

Machine MachineWith(int gpus, int cpus) {
  Machine machine{.host = "here", .cpus = cpus, .mem_bytes = 0, .gpus = {}};
  for (int i = 0; i < gpus; ++i) machine.gpus.push_back({.index = i, .type = "a40", .uuid = {}});
  return machine;
}

std::vector<NodeKind> Kinds(const std::optional<Machine>& node) {
  if (!node) return {};
  return {{*node, {}, {}, {}}};
}

Resources Choose(const JobRequest& request, const std::optional<Machine>& node, const Config& config = {}) {
  const auto resources = ChooseResources(request, config, Kinds(node));
  EXPECT_TRUE(resources) << resources.error().message;
  return resources.value_or(Resources{});
}

TEST(ChooseResources, AMachineWithGpusGivesOne) {
  const Resources resources = Choose({}, MachineWith(4, 16));
  EXPECT_EQ(resources.gpus, 1);
  EXPECT_EQ(resources.ranks_per_node, 1);
  EXPECT_EQ(resources.cpus, 4);
}

TEST(ChooseResources, AMachineWithoutGpusGivesNone) {
  const Resources resources = Choose({}, MachineWith(0, 16));
  EXPECT_EQ(resources.gpus, 0);
  EXPECT_EQ(resources.ranks_per_node, 1);
  EXPECT_EQ(resources.cpus, 1);
}

TEST(ChooseResources, OneRankPerGpu) {
  JobRequest request;
  request.gpus = 3;
  EXPECT_EQ(Choose(request, MachineWith(4, 16)).ranks_per_node, 3);
  EXPECT_EQ(Choose(request, MachineWith(4, 16)).cpus, 12);
}

TEST(ChooseResources, OneRankForAllGpus) {
  JobRequest request;
  request.gpus = 3;
  request.one_rank_per_node = true;
  EXPECT_EQ(Choose(request, MachineWith(4, 16)).ranks_per_node, 1);
}

TEST(ChooseResources, RanksWithoutGpusGetAProcessorEachWhileThereAreAny) {
  JobRequest request;
  request.ranks_per_node = 8;
  EXPECT_EQ(Choose(request, MachineWith(0, 16)).cpus, 8);
  EXPECT_EQ(Choose(request, MachineWith(0, 2)).cpus, 2);
}

TEST(ChooseResources, MoreGpusThanProcessorsPinNothing) {
  EXPECT_EQ(Choose({}, MachineWith(4, 2)).cpus, 0);
}

TEST(ChooseResources, TheConfigurationComesBeforeTheMachine) {
  Config config;
  config.defaults.gpus = 0;
  config.defaults.time_seconds = 60;
  EXPECT_EQ(Choose({}, MachineWith(4, 16), config).gpus, 0);
  EXPECT_EQ(Choose({}, MachineWith(4, 16), config).time_seconds, 60);
}

TEST(ChooseResources, TheRequestComesBeforeTheConfiguration) {
  Config config;
  config.defaults.gpus = 3;
  config.defaults.ranks_per_node = 5;
  JobRequest request;
  request.gpus = 2;
  request.ranks_per_node = 4;
  request.cpus = 7;
  const Resources resources = Choose(request, MachineWith(4, 16), config);
  EXPECT_EQ(resources.gpus, 2);
  EXPECT_EQ(resources.ranks_per_node, 4);
  EXPECT_EQ(resources.cpus, 7);
}

TEST(ChooseResources, ContradictionsAreRefused) {
  JobRequest ranks;
  ranks.one_rank_per_node = true;
  ranks.ranks_per_node = 2;
  JobRequest uneven;
  uneven.gpus = 3;
  uneven.nodes = 2;
  JobRequest type;
  type.gpus = 0;
  type.gpu_type = "a40";
  for (const JobRequest& request : {ranks, uneven, type}) {
    const auto resources = ChooseResources(request, {}, Kinds(MachineWith(4, 16)));
    ASSERT_FALSE(resources);
    EXPECT_EQ(resources.error().code, ErrorCode::kUsage);
  }
}

class WorkdirTest : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/overcap_workdir_XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
    std::filesystem::create_directories(folder_ + "/code/sub");
    std::ofstream(folder_ + "/code/file") << "x";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  Result<Workdir> Find(const std::string& workdir) {
    JobRequest request;
    request.folder = folder_ + "/code";
    request.workdir = workdir;
    return FindWorkdir(request);
  }
  std::string folder_;
};

TEST_F(WorkdirTest, IsTheFolderItselfByDefault) {
  for (const char* workdir : {"", ".", "sub/.."}) {
    const auto found = Find(workdir);
    ASSERT_TRUE(found) << workdir;
    EXPECT_TRUE(found->inside) << workdir;
    EXPECT_EQ(found->inner, "") << workdir;
    EXPECT_EQ(found->path, folder_ + "/code") << workdir;
  }
}

TEST_F(WorkdirTest, MayBeAFolderInside) {
  for (const std::string& workdir : {std::string("sub"), std::string("./sub/"), folder_ + "/code/sub"}) {
    const auto found = Find(workdir);
    ASSERT_TRUE(found) << workdir;
    EXPECT_TRUE(found->inside);
    EXPECT_EQ(found->inner, "sub");
  }
}

TEST_F(WorkdirTest, MayBeAFolderOutside) {
  const auto found = Find("..");
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->inside);
  EXPECT_EQ(found->path, folder_);
}

TEST_F(WorkdirTest, MustBeAFolder) {
  EXPECT_EQ(Find("none").error().message, "workdir 'none' does not exist");
  EXPECT_EQ(Find("file").error().message, "workdir 'file' is no folder");
  EXPECT_EQ(Find("none").error().code, ErrorCode::kUsage);
}

NodeKind Kind(const std::string& name, const std::string& type, int gpus, int cpus,
              const std::string& partition) {
  Machine machine{.host = name, .cpus = cpus, .mem_bytes = 0, .gpus = {}};
  for (int i = 0; i < gpus; ++i) machine.gpus.push_back({.index = i, .type = type, .uuid = {}});
  return {machine, {name}, {partition}, {}};
}

int CpusOf(const JobRequest& request) {
  const std::vector<NodeKind> nodes = {
      Kind("ig-88", "2080_ti", 8, 56, "short"), Kind("xaea-12", "a40", 8, 128, "long"),
      Kind("clippy", "rtx_6000", 8, 56, "short"), Kind("login", "", 0, 256, "cpu")};
  const auto resources = ChooseResources(request, {}, nodes);
  EXPECT_TRUE(resources) << resources.error().message;
  return resources ? resources->cpus : -1;
}

TEST(ChooseResources, ProcessorsAreTheShareOfTheNodesThatMatchTheRequest) {
  JobRequest request;
  EXPECT_EQ(CpusOf(request), 7);  // fits all nodes with GPUs
  request.gpus = 4, request.gpu_type = "rtx_6000";
  EXPECT_EQ(CpusOf(request), 28);
  request.gpu_type = "a40|rtx_6000";
  EXPECT_EQ(CpusOf(request), 28);
  request.gpu_type = "a40";
  EXPECT_EQ(CpusOf(request), 64);
  request.gpu_type.clear(), request.placement.node = "xaea-12";
  EXPECT_EQ(CpusOf(request), 64);
  request.placement.node.clear(), request.placement.partitions = {"long"};
  EXPECT_EQ(CpusOf(request), 64);
  request.gpus = 0, request.placement.partitions.clear();
  EXPECT_EQ(CpusOf(request), 1);
  request.gpus = 16, request.gpu_type = "a40";  // no node has them: the cluster's to refuse
  EXPECT_EQ(CpusOf(request), 0);
}

TEST(ChooseResources, AFeatureMayNameTheTypeOfGpusThatHaveNone) {
  NodeKind kind = Kind("n1", "", 4, 32, "short");
  kind.features = {"v100"};
  JobRequest request;
  request.gpus = 2, request.gpu_type = "v100";
  EXPECT_EQ(ChooseResources(request, {}, {kind})->cpus, 16);
}

}  // namespace
}  // namespace overcap
