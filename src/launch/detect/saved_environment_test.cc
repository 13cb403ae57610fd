// SPDX-License-Identifier: Apache-2.0
#include "launch/detect/saved_environment.h"

#include <gtest/gtest.h>

#include "sys/fake_files.h"

namespace overcap {
namespace {

Allocation SlurmJob(const std::string& id) {
  Allocation allocation;
  allocation.scheduler = SchedulerKind::kSlurm;
  allocation.in_job = true;
  allocation.job_id = id;
  allocation.hosts = {{"n1", 0, 2}, {"n2", 0, 4}};
  return allocation;
}

TEST(SavedEnvironmentTest, ValuesAreQuotedForTheShell) {
  EXPECT_EQ(ExportLines({{"A", "x y"}, {"B", "it's $HOME `id`\\"}, {"C", ""}}),
            "export A='x y'\nexport B='it'\\''s $HOME `id`\\'\nexport C=''\n");
}

TEST(SavedEnvironmentTest, WhatAShellCannotTakeIsLeftOut) {
  EXPECT_EQ(ExportLines({{"A B", "x"}, {"1A", "x"}, {"A;id", "x"}, {"", "x"}, {"N", "a\nb"}}), "");
}

TEST(SavedEnvironmentTest, OnlyTheJobsOwnVariablesAreKept) {
  const Variables variables({"HOME=/h", "PBS_JOBID=1.s", "PBS_JOBCOOKIE=5F2E", "PMI_RANK=0", "SLURM_JOB_ID=7",
                             "SLURM_PROCID=0", "SLURM_STEP_ID=0", "SLURM_JWT=ey", "AWS_SECRET_ACCESS_KEY=x",
                             "SLURM_JOB_NODELIST=n[1-2]", "SLURM_SRUN_COMM_PORT=1", "PBS_TASKNUM=1",
                             "SLURM_LOCALID=0"});
  EXPECT_EQ(JobVariables(variables, SlurmJob("7")),
            (NamedValues{{"PBS_JOBID", "1.s"}, {"SLURM_JOB_ID", "7"}, {"SLURM_JOB_NODELIST", "n[1-2]"}}));
}

TEST(SavedEnvironmentTest, WhatWasRestoredTakesThePlaceOfWhatWasLeftOver) {
  Allocation allocation = SlurmJob("8");
  allocation.restored = {{"SLURM_JOB_ID", "8"}};
  EXPECT_EQ(JobVariables(Variables({"SLURM_JOB_ID=7"}), allocation), (NamedValues{{"SLURM_JOB_ID", "8"}}));
  EXPECT_EQ(JobVariables(Variables({"SLURM_JOB_ID=7"}), Allocation{}), NamedValues()) << "it is over";
}

TEST(SavedEnvironmentTest, FactsNameTheHostsInShort) {
  EXPECT_EQ(FactsOf(SlurmJob("7"), 6), (NamedValues{{"OVERCAP_NHOSTS", "2"},
                                                    {"OVERCAP_GPUS_PER_HOST", "4"},
                                                    {"OVERCAP_WORLD_SIZE", "6"},
                                                    {"OVERCAP_HOSTS", "n[1-2]"},
                                                    {"OVERCAP_JOB", "7"}}));
}

class SavedTest : public testing::Test {
 protected:
  void Save(const std::string& name, const std::string& value) {
    ASSERT_TRUE(SaveEnvironment("/r", name, {{"SLURM_JOB_ID", value}}, files_));
  }
  FakeFiles files_;
};

TEST_F(SavedTest, TheLatestIsLoadedUnlessAJobIsNamed) {
  Save("slurm-123", "123");
  Save("slurm-1234", "1234");
  Save("pbs-12.server", "12");
  EXPECT_EQ(LoadEnvironment("/r", "", files_)->name, "pbs-12.server");
  const auto named = LoadEnvironment("/r", "123", files_).value();
  EXPECT_EQ(named.name, "slurm-123");
  EXPECT_EQ(named.scheduler, "slurm");
  EXPECT_EQ(named.job_id, "123");
  EXPECT_EQ(named.values, (NamedValues{{"SLURM_JOB_ID", "123"}}));
  EXPECT_EQ(LoadEnvironment("/r", "slurm-1234", files_)->job_id, "1234");
  EXPECT_EQ(LoadEnvironment("/r", "12", files_)->job_id, "12.server") << "PBS ids are often given in short";
}

TEST_F(SavedTest, EveryByteOfAValueComesBack) {
  const NamedValues values = {
      {"SLURM_A", "it's"}, {"SLURM_B", "''"}, {"SLURM_C", "\xff $(id) \\"}, {"SLURM_D", ""}};
  ASSERT_TRUE(SaveEnvironment("/r", "slurm-1", values, files_));
  EXPECT_EQ(LoadEnvironment("/r", "", files_)->values, values);
}

TEST_F(SavedTest, NothingSavedIsNotFound) {
  EXPECT_EQ(LoadEnvironment("/r", "", files_).error().message, "no environment was saved");
  Save("slurm-123", "123");
  for (const char* job : {"12", "1", "../slurm-123", "latest"}) {
    const auto loaded = LoadEnvironment("/r", job, files_);
    ASSERT_FALSE(loaded) << job;
    EXPECT_EQ(loaded.error().code, ErrorCode::kNotFound);
  }
}

TEST_F(SavedTest, ANumberThatTwoSchedulersUseMustBeSpelledOut) {
  Save("slurm-12", "12");
  Save("pbs-12.server", "12");
  const auto loaded = LoadEnvironment("/r", "12", files_);
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, ErrorCode::kConflict);
}

TEST_F(SavedTest, AFileWithAnythingElseInItIsDamaged) {
  Save("slurm-1", "1");
  const std::string good = files_.Read("/r/env/slurm-1").value();
  for (const std::string& text :
       {std::string(), good.substr(0, good.size() - 3), "rm -rf /\n" + good,
        "export A='x'; id\n# end\n" + good, std::string("export A=$(id)\n# end\n"),
        std::string("export A='a'b'c'\n# end\n"), std::string("export A;id='a'\n# end\n")}) {
    ASSERT_TRUE(files_.WriteAtomic("/r/env/slurm-1", text, false));
    const auto loaded = LoadEnvironment("/r", "1", files_);
    ASSERT_FALSE(loaded) << text;
    EXPECT_EQ(loaded.error().code, ErrorCode::kCorrupt);
  }
}

TEST_F(SavedTest, AJobIdThatIsAPathIsRefused) {
  EXPECT_FALSE(SaveEnvironment("/r", "slurm-../../x", {}, files_));
}

}  // namespace
}  // namespace overcap
