// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/tool_variables.h"

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

}  // namespace
}  // namespace overcap
