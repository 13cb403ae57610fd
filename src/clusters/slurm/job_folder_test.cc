// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/job_folder.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

#include "clusters/slurm/job_index.h"
#include "model/job_id.h"

namespace overcap {
namespace {

class JobFolderTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(mkdtemp(root_), nullptr); }
  void TearDown() override { std::filesystem::remove_all(root_); }

  static JobSpec Spec() {
    JobSpec spec;
    spec.id = "me_1800000000_00000001";
    spec.user = "me";
    spec.command = {"train", "\xff\x01"};
    return spec;
  }
  void Write(const std::string& name, std::string_view text) {
    const std::filesystem::path path = std::filesystem::path(folder_.path()) / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }

  char root_[40] = "/tmp/overcap_folder_XXXXXX";
  SlurmJobFolder folder_{std::string("/tmp/none")};
};

TEST_F(JobFolderTest, WhatIsWrittenIsReadBack) {
  folder_ = SlurmJobFolder(std::string(root_) + "/jobs/a");
  EXPECT_FALSE(folder_.Exists());
  EXPECT_EQ(folder_.Spec().error().code, ErrorCode::kNotFound);
  ASSERT_TRUE(*folder_.Make(Spec(), "#!/bin/sh\n"));
  EXPECT_FALSE(*folder_.Make(Spec(), "#!/bin/sh\n")) << "it was there";
  EXPECT_EQ(*folder_.Spec(), Spec());
  ASSERT_TRUE(folder_.MakeDurable());
  ASSERT_TRUE(folder_.WriteCancel({5, "me", "enough \"now\""}));
  ASSERT_TRUE(folder_.WriteCancel({6, "me", "again"}));
  EXPECT_EQ(folder_.Cancel()->reason, "enough \"now\"") << "the first wish stays";
  ASSERT_TRUE(folder_.WriteHold({7, true}));
  ASSERT_TRUE(folder_.WriteHold({8, false}));
  EXPECT_EQ(folder_.Hold()->at_us, 8);
  EXPECT_FALSE(folder_.Hold()->held);
}

TEST_F(JobFolderTest, TheFirstHandleStays) {
  folder_ = SlurmJobFolder(std::string(root_) + "/jobs/a");
  ASSERT_TRUE(folder_.Make(Spec(), ""));
  EXPECT_FALSE(folder_.Handle());
  const SlurmHandle first{"sky", 7, "agent", 1}, second{"sky", 8, "submit", 2};
  EXPECT_EQ(*folder_.WriteHandle(first), first);
  EXPECT_EQ(*folder_.WriteHandle(second), first);
  EXPECT_EQ(*folder_.Handle(), first);
}

TEST_F(JobFolderTest, FilesThatAreNoneAreAsGoodAsNotThere) {
  folder_ = SlurmJobFolder(std::string(root_) + "/jobs/a");
  ASSERT_TRUE(folder_.Make(Spec(), ""));
  for (const std::string_view text :
       {"", "{", "[]", "{\"slurm_id\":-1}", "{\"slurm_id\":\"7\"}", "\xff\xff"}) {
    Write("handle.json", text);
    EXPECT_FALSE(folder_.Handle()) << text;
    Write("ended.json", text);
    EXPECT_FALSE(folder_.Ended(Spec())) << text;
  }
}

TEST_F(JobFolderTest, TheLastAttemptIsTheEvidence) {
  folder_ = SlurmJobFolder(std::string(root_) + "/jobs/a");
  JobSpec spec = Spec();
  spec.resources.gpus = 2;
  ASSERT_TRUE(folder_.Make(spec, ""));
  EXPECT_EQ(folder_.Evidence(spec).last.attempt, 0);
  Write("attempt-1/agent-0.jsonl", "{\"e\":\"end\",\"t\":1,\"state\":\"preempted\"}\n");
  Write("attempt-2/agent-0.claim", R"({"pid":1,"slurm_id":7,"slurm_restart":1,"nodes":"n[1-2]"})");
  Write("attempt-2/agent-0.jsonl", "{\"e\":\"started\",\"t\":9,\"pids\":[3],\"master_port\":1}\n{\"e\":\"en");
  Write("attempt-2/environment", std::string("A=1\0CUDA_VISIBLE_DEVICES=0\0SLURM_JOB_GPUS=2-3\0", 46));
  const AttemptReport last = folder_.Evidence(spec).last;
  EXPECT_EQ(last.attempt, 2);
  EXPECT_EQ(last.slurm_id, 7);
  EXPECT_EQ(last.slurm_restart, 1);
  EXPECT_EQ(last.nodes, "n[1-2]");
  EXPECT_EQ(last.report.started_us, 9);
  EXPECT_FALSE(last.report.end);
  EXPECT_GT(last.touched_us, 0);
  EXPECT_EQ(last.gpus, (std::vector<int>{2, 3}));
}

TEST_F(JobFolderTest, AllSlotsOfAnArrayAreRead) {
  folder_ = SlurmJobFolder(std::string(root_) + "/jobs/a");
  JobSpec spec = Spec();
  spec.array = *ParseArraySpec("0-3");
  ASSERT_TRUE(folder_.Make(spec, ""));
  for (const std::string slot : {"0", "5", "x", "99999"}) Write("attempt-1/agent-" + slot + ".claim", "{}");
  const auto slots = folder_.Evidence(spec).slots;
  ASSERT_EQ(slots.size(), 2u);
  EXPECT_EQ(slots[1].slot, 5);
}

TEST_F(JobFolderTest, TheIndexKnowsWhatIsOpenAndWhatEndedLast) {
  const JobIndex index(std::string(root_) + "/clusters/sky");
  EXPECT_TRUE(index.OpenIds().empty());
  std::vector<std::string> ids;
  for (uint32_t i = 0; i < 4; ++i) {
    ids.push_back(MakeJobId("me", 1'800'000'000, i));
    index.Open(ids.back());
  }
  EXPECT_EQ(index.OpenIds().size(), 4u);
  index.Close(ids[2], 30);
  index.Close(ids[0], 50);
  index.Close(ids[1], 40);
  index.Close(ids[1], 40);
  EXPECT_EQ(index.OpenIds(), std::vector<std::string>{ids[3]});
  EXPECT_EQ(index.LastEnded(2), (std::vector<std::string>{ids[0], ids[1]}));
  std::ofstream(std::string(root_) + "/clusters/sky/ended", std::ios::app) << "x\n9 ../../etc\n77";
  EXPECT_EQ(index.LastEnded(9).size(), 3u) << "what is torn or no id is left out";
}

}  // namespace
}  // namespace overcap
