// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/tool_variables.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace overcap {
namespace {

TEST(ToolVariables, WhatChangesAnswersOrJobsIsLeftOut) {
  for (const char* name : {"SQUEUE_STATES", "SINFO_FORMAT", "SACCT_FORMAT", "SBATCH_ARRAY_INX",
                           "SBATCH_OUTPUT", "SLURM_MEM_PER_NODE", "SLURM_JOB_ID", "SLURM_TIME_FORMAT"}) {
    EXPECT_TRUE(IsUnwantedToolVariable(name)) << name;
  }
}

TEST(ToolVariables, WhatSaysWhereToGoStays) {
  for (const char* name :
       {"SLURM_CONF", "SLURM_CLUSTERS", "SBATCH_ACCOUNT", "SBATCH_PARTITION", "PATH", "HOME"}) {
    EXPECT_FALSE(IsUnwantedToolVariable(name)) << name;
  }
}

TEST(ToolVariables, OnlyTheQueueIsReadWithoutATimeZone) {
  const auto zone = [](std::string_view program) {
    const auto variables = ToolVariables(program);
    return std::count(variables.begin(), variables.end(), std::pair<std::string, std::string>("TZ", "UTC0"));
  };
  EXPECT_EQ(zone("squeue"), 1);
  for (const char* program : {"sacct", "scontrol", "sbatch"}) EXPECT_EQ(zone(program), 0) << program;
}

}  // namespace
}  // namespace overcap
