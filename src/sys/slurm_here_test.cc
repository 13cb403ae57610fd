// SPDX-License-Identifier: Apache-2.0
#include "sys/slurm_here.h"

#include <gtest/gtest.h>

namespace overcap {
namespace {

bool IsSetUp(std::string_view program, const std::string& file, std::vector<std::string> variables = {}) {
  return SlurmIsSetUp(Variables(std::move(variables)), program,
                      [&](const std::string& path) { return path == file; });
}

TEST(SlurmHereTest, AConfigurationFileAnywhereCounts) {
  EXPECT_FALSE(IsSetUp("/usr/bin/sbatch", ""));
  for (const char* file : {"/etc/slurm/slurm.conf", "/etc/slurm-llnl/slurm.conf", "/usr/local/etc/slurm.conf",
                           "/opt/slurm/etc/slurm.conf"}) {
    EXPECT_TRUE(IsSetUp("/usr/bin/sbatch", file)) << file;
  }
}

TEST(SlurmHereTest, ALoginNodeWithoutAFileOfItsOwnHasThatOfSackd) {
  EXPECT_TRUE(IsSetUp("/usr/bin/sbatch", "/run/slurm/conf/slurm.conf"));
}

TEST(SlurmHereTest, ProgramsOfASiteNeedNoFile) {
  EXPECT_TRUE(IsSetUp("/opt/slurm/bin/sbatch", ""));
  EXPECT_FALSE(IsSetUp("/bin/squeue", ""));
  EXPECT_FALSE(IsSetUp("", "")) << "no program was found";
}

TEST(SlurmHereTest, TheVariableAloneIsEnough) {
  EXPECT_TRUE(IsSetUp("/usr/bin/sbatch", "", {"SLURM_CONF=/scratch/slurm.conf"}));
  EXPECT_FALSE(IsSetUp("/usr/bin/sbatch", "", {"SLURM_CONF="}));
}

}  // namespace
}  // namespace overcap
