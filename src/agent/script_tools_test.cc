// SPDX-License-Identifier: Apache-2.0
#include "agent/script_tools.h"

#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>

#include "agent/rank_environment.h"
#include "model/job_id.h"
#include "sys/testing/temp_folder.h"

namespace overcap {
namespace {

TEST(ScriptTools, EachJobHasItsOwnNumberOfAtMostEighteenDigits) {
  EXPECT_EQ(JobNumber("ada_1577836801_00000002"), (int64_t{1} << 32) + 2);
  EXPECT_EQ(JobNumber("a.b-c_1577836801_ffffffff"), (int64_t{1} << 32) + 0xffff'ffff);
  EXPECT_NE(JobNumber(MakeJobId("ada", 1'800'000'000, 1)), JobNumber(MakeJobId("ada", 1'800'000'001, 1)));
  EXPECT_LT(JobNumber(MakeJobId("ada", 1'800'000'000, 0xffff'ffff)), 1'000'000'000'000'000'000);
}

TEST(ScriptTools, WhatSlurmSaidOfAnotherJobIsRemoved) {
  JobSpec spec;
  spec.id = "ada_1577836801_00000002";
  spec.batch = true;
  spec.resources.ranks_per_node = 2;
  AgentOptions options;
  options.job_dir = "/r/jobs/x";
  spec.command = {"/bin/bash", "-e", "jobs/job.sh", "--epochs"};
  const std::string blob("PATH=/usr/bin\0SLURM_JOB_NODELIST=n[1-2]\0SLURMD_NODENAME=n1\0A=1\0", 63);
  const auto env = RankEnvironment(blob, spec, options, {"/work", 0, {}, {}, true}, 0);
  const auto count = [&](const char* entry) { return std::count(env.begin(), env.end(), entry); };
  EXPECT_EQ(
      std::ranges::count_if(env, [](const std::string& entry) { return entry.find("n1") != entry.npos; }), 0);
  EXPECT_EQ(count("PATH=/r/jobs/x/attempt-1/tools:/usr/bin"), 1);
  EXPECT_EQ(count("SLURM_JOB_ID=4294967298"), 1);
  EXPECT_EQ(count("SLURM_NTASKS=2"), 1);
  EXPECT_EQ(count("SLURM_PROCID=0"), 1);
  EXPECT_EQ(count("SLURM_JOB_NAME=job.sh"), 1);
  EXPECT_EQ(count("A=1"), 1);
}

TEST(ScriptTools, TasksOfAnArrayKeepTheirOtherVariables) {
  JobSpec spec;
  spec.id = "ada_1577836801_00000002";
  spec.batch = true;
  spec.command = {"/bin/bash", "job.sh"};
  spec.array = *ParseArraySpec("3-4");
  const std::string blob("PATH=/usr/bin\0", 14);
  auto env = RankEnvironment(blob, spec, {}, {"/work", 0, {}, {}, true}, 0);
  const auto has = [&](const char* entry) { return std::ranges::find(env, entry) != env.end(); };
  EXPECT_TRUE(has("SLURM_ARRAY_TASK_ID="));
  EXPECT_TRUE(has("PATH=/attempt-1/tools:/usr/bin"));
  const size_t size = env.size();
  SetTask(&env, spec, {}, 4, 2);
  EXPECT_EQ(env.size(), size);
  EXPECT_TRUE(has("SLURM_ARRAY_TASK_ID=4"));
  EXPECT_TRUE(has("SLURM_JOB_ID=4294967302"));
  EXPECT_TRUE(has("OVERCAP_TASK_ID=4"));
  EXPECT_TRUE(has("OVERCAP_TASK_TRY=2"));
}

TEST(ScriptTools, ElasticJobsAndThoseOfAClusterHaveNone) {
  JobSpec spec;
  spec.batch = true;
  EXPECT_TRUE(HasScriptTools(spec, {}));
  spec.resources.max_nodes = 2;
  EXPECT_FALSE(HasScriptTools(spec, {}));
  spec.resources.max_nodes = 0;
  AgentOptions options;
  options.under = "slurm";
  EXPECT_FALSE(HasScriptTools(spec, options));
}

TEST(ScriptTools, OnAClusterTheScriptHasTheVariablesOfTheCluster) {
  JobSpec spec;
  spec.id = "ada_1577836801_00000002";
  spec.batch = true;
  AgentOptions options;
  options.under = "slurm";
  const auto env = RankEnvironment("", spec, options, {"/work", 0, {"SLURM_JOB_ID=7"}}, 0);
  EXPECT_EQ(std::count(env.begin(), env.end(), "SLURM_JOB_ID=7"), 1);
}

}  // namespace
}  // namespace overcap
