// SPDX-License-Identifier: Apache-2.0
#include "control/implied_clusters.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

#include "base/text.h"

namespace overcap {
namespace {

// A PATH with a program of that name.
class ImpliedClusters : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/overcap-implied-XXXXXX";
    folder_ = mkdtemp(name);
    std::ofstream(folder_ + "/sbatch") << "#!/bin/sh\n";
    std::filesystem::permissions(folder_ + "/sbatch", std::filesystem::perms::owner_all);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Config With(std::vector<std::string> variables, std::string_view text = "") {
    variables.push_back("PATH=" + folder_);
    Config config;
    EXPECT_TRUE(ApplyConfigText(text, "overcap.yaml", &config));
    AddImpliedClusters(Variables(std::move(variables)), &config);
    return config;
  }

  std::string folder_;
};

TEST_F(ImpliedClusters, AProgramOnPathMakesItsCluster) {
  const Config config = With({});
  ASSERT_TRUE(config.clusters.contains("slurm"));
  EXPECT_EQ(config.clusters.at("slurm").driver, "slurm");
  EXPECT_TRUE(config.clusters.at("slurm").implied);
}

TEST_F(ImpliedClusters, WithoutTheProgramThereIsNone) {
  Config config;
  AddImpliedClusters(Variables({"PATH=/nowhere", "SLURM_CONF=/x"}), &config);
  EXPECT_FALSE(config.clusters.contains("slurm"));
  EXPECT_EQ(config.cluster, "local");
}

TEST_F(ImpliedClusters, ProgramsInAFolderOfTheSiteMakeItTheDefault) {
  EXPECT_EQ(With({}).cluster, "slurm");
  EXPECT_EQ(With({"SLURM_JOB_ID=7"}).cluster, "local") << "inside of a job";
}

TEST_F(ImpliedClusters, AMachineOfTheClusterUsesItByDefault) {
  EXPECT_EQ(With({"SLURM_CONF=/x"}).cluster, "slurm");
  EXPECT_EQ(With({"SLURM_CONF=/x"}, "cluster: local").cluster, "local");
  EXPECT_EQ(With({"SLURM_CONF=/x", "SLURM_JOB_ID=7"}).cluster, "local");
}

TEST_F(ImpliedClusters, AConfiguredClusterOfTheDriverTakesItsPlace) {
  const Config config = With({"SLURM_CONF=/x"}, "clusters: {sky: {driver: slurm}}");
  EXPECT_FALSE(config.clusters.contains("slurm"));
  EXPECT_EQ(config.cluster, "sky");
}

TEST_F(ImpliedClusters, OfSeveralNoneIsTheDefault) {
  EXPECT_EQ(With({"SLURM_CONF=/x"}, "clusters: {a: {driver: slurm}, b: {driver: slurm}}").cluster, "local");
}

TEST_F(ImpliedClusters, ANameThatIsTakenStaysAsItIs) {
  const Config config = With({"SLURM_CONF=/x"}, "clusters: {slurm: {driver: local}}");
  EXPECT_EQ(config.clusters.at("slurm").driver, "local");
  EXPECT_EQ(config.cluster, "local");
}

}  // namespace
}  // namespace overcap
