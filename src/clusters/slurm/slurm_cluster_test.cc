// SPDX-License-Identifier: Apache-2.0
// The driver against a Slurm in memory; slurm_conformance_test.cc has it against a real one.
#include "clusters/slurm/slurm_cluster.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/text.h"
#include "clusters/slurm/job_folder.h"
#include "clusters/testing/testing_slurm.h"
#include "model/job_id.h"
#include "sys/user.h"

namespace overcap {
namespace {

class SlurmClusterTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(mkdtemp(root_), nullptr);
    auto slurm = std::make_unique<TestingSlurm>(root_);
    slurm_ = slurm.get();
    cluster_ = std::make_unique<SlurmCluster>(std::move(slurm));
  }
  void TearDown() override {
    cluster_.reset();
    std::filesystem::remove_all(root_);
  }

  JobSpec Spec() {
    JobSpec spec;
    spec.submitted_us = slurm_->clock().WallUs();
    spec.id = MakeJobId("me", spec.submitted_us / 1'000'000, next_++);
    spec.user = "me";
    spec.cluster = "sky";
    spec.command = {"true"};
    spec.workdir = "/tmp";
    return spec;
  }
  std::string Submit(const JobSpec& spec) {
    const auto record = cluster_->Submit({spec, ""});
    EXPECT_TRUE(record) << record.error().message;
    return spec.id;
  }
  JobRecord QueryOne(const std::string& id) {
    const auto records = cluster_->Query({id});
    EXPECT_TRUE(records) << records.error().message;
    return records ? records->front() : JobRecord();
  }
  std::string FolderOf(const std::string& id) const { return StrCat(root_, "/jobs/", id); }
  // What an agent that has done its work leaves behind.
  void Report(const std::string& id, const std::string& lines) {
    std::filesystem::create_directories(FolderOf(id) + "/attempt-1");
    std::ofstream(FolderOf(id) + "/attempt-1/agent-0.claim") << R"({"pid":1,"slurm_id":100})";
    std::ofstream(FolderOf(id) + "/attempt-1/agent-0.jsonl") << lines;
  }

  char root_[40] = "/tmp/overcap_slurm_XXXXXX";
  TestingSlurm* slurm_ = nullptr;
  std::unique_ptr<SlurmCluster> cluster_;
  uint32_t next_ = 1;
};

TEST_F(SlurmClusterTest, LimitsOfTheConfigurationAreKept) {
  ClusterSettings settings = slurm_->settings();
  settings.scheduler.max_gpus = 2;
  settings.scheduler.max_time_seconds = 3600;
  SlurmCluster cluster(settings);
  JobSpec spec = Spec();
  spec.resources.gpus = 3;
  EXPECT_EQ(cluster.Plan(spec).error().code, ErrorCode::kUsage);
  spec.resources.gpus = 0;
  spec.resources.time_seconds = 3601;
  EXPECT_NE(cluster.Plan(spec).error().message.find("at most 1h"), std::string::npos);
  spec.resources.time_seconds = 3600;
  EXPECT_TRUE(cluster.Plan(spec));
}

TEST_F(SlurmClusterTest, ThePlanShowsTheCommandAndTheScriptAndAsksForPartitionsAlone) {
  JobSpec spec = Spec();
  spec.placement.partitions = {"short", "long"};
  spec.requeue_on_timeout = true;
  const auto plan = cluster_->Plan(spec);
  ASSERT_TRUE(plan) << plan.error().message;
  for (const std::string_view part : {"$ sbatch ", "--partition=short,long", "--signal=B:USR1@60",
                                      "#!/bin/sh", "/opt/overcap agent --job"}) {
    EXPECT_NE(plan->text.find(part), std::string::npos) << part << " is not in " << plan->text;
  }
  ASSERT_EQ(slurm_->calls.size(), 1u);
  EXPECT_EQ(slurm_->calls[0].back(), "partition");
  spec.placement.partitions.clear();
  EXPECT_TRUE(cluster_->Plan(spec));
  EXPECT_EQ(slurm_->calls.size(), 1u);
}

TEST_F(SlurmClusterTest, AnEndThatTheAgentReportsIsKnownWithoutSlurm) {
  const std::string id = Submit(Spec());
  Report(id,
         R"({"e":"started","t":5,"pids":[1],"master_port":1})"
         "\n"
         R"({"e":"end","t":9,"state":"failed","exit_status":3,"signal":0,"first_failed_rank":0,"reason":""})"
         "\n");
  slurm_->calls.clear();
  slurm_->away = true;
  EXPECT_EQ(QueryOne(id).state, JobState::kFailed);
  EXPECT_EQ(QueryOne(id).exit_status, 3);
  EXPECT_TRUE(slurm_->calls.empty());
  EXPECT_TRUE(std::filesystem::exists(FolderOf(id) + "/ended.json"));
}

class StrangersJob : public SlurmClusterTest {
 protected:
  static constexpr uid_t kStranger = 61001;

  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: folders of others need root";
    SlurmClusterTest::SetUp();
    id_ = Submit(Spec());
    Report(
        id_,
        R"({"e":"end","t":9,"state":"failed","exit_status":3,"signal":0,"first_failed_rank":0,"reason":""})"
        "\n");
    ASSERT_EQ(chown(FolderOf(id_).c_str(), kStranger, kStranger), 0);
  }

  std::string id_;
};

TEST_F(StrangersJob, ItsRecordNamesItsOwnerAndNoFiles) {
  const JobRecord record = QueryOne(id_);
  EXPECT_EQ(record.state, JobState::kFailed);
  EXPECT_EQ(record.exit_status, 3);
  EXPECT_EQ(record.spec.user, std::to_string(kStranger));
  EXPECT_EQ(record.dir, "");
  EXPECT_TRUE(record.logs.empty());
  EXPECT_FALSE(std::filesystem::exists(FolderOf(id_) + "/ended.json"));
  EXPECT_EQ(cluster_->List({.all = true})->size(), 1u);
  EXPECT_FALSE(cluster_->Resolve({"last"}));
}

TEST_F(StrangersJob, NothingIsDoneWithItAndNothingIsWrittenThere) {
  slurm_->calls.clear();
  EXPECT_EQ(cluster_->Cancel({id_}, "x").error().code, ErrorCode::kDenied);
  EXPECT_EQ(cluster_->Hold({id_}).error().code, ErrorCode::kDenied);
  EXPECT_EQ(cluster_->Release({id_}).error().code, ErrorCode::kDenied);
  EXPECT_EQ(cluster_->Remove({id_}).error().code, ErrorCode::kDenied);
  EXPECT_TRUE(slurm_->calls.empty());
  EXPECT_TRUE(std::filesystem::exists(FolderOf(id_)));
  EXPECT_FALSE(std::filesystem::exists(FolderOf(id_) + "/cancel.json"));
}

TEST_F(StrangersJob, LinksInItsFolderAreNotFollowed) {
  std::filesystem::rename(FolderOf(id_) + "/spec.json", StrCat(root_, "/elsewhere"));
  std::filesystem::create_symlink(StrCat(root_, "/elsewhere"), FolderOf(id_) + "/spec.json");
  EXPECT_EQ(cluster_->Query({id_}).error().code, ErrorCode::kNotFound);
}

TEST_F(SlurmClusterTest, AJobAfterOneThatFailedNeverStartsAndIsNotSent) {
  const std::string id = Submit(Spec());
  Report(id,
         R"({"e":"end","t":9,"state":"failed","exit_status":3,"signal":0,"first_failed_rank":0,"reason":""})"
         "\n");
  JobSpec after = Spec();
  after.after = {{id, false}};
  Submit(after);
  EXPECT_EQ(slurm_->jobs.size(), 1u);
  EXPECT_EQ(QueryOne(after.id).state, JobState::kCancelled);
  EXPECT_NE(QueryOne(after.id).reason.find(id), std::string::npos);
}

TEST_F(SlurmClusterTest, ADependencyIsSentByItsNumber) {
  const std::string id = Submit(Spec());
  JobSpec after = Spec();
  after.after = {{id, true}};
  Submit(after);
  ASSERT_EQ(slurm_->scripts.size(), 2u);
  EXPECT_NE(slurm_->scripts[1].find("#SBATCH \"--dependency=afterany:100\"\n"), std::string::npos);
}

TEST_F(SlurmClusterTest, OneThatIsExpectedIsStartedOnceWhateverElseTheJobIs) {
  const std::string id = Submit(Spec());
  JobSpec after = Spec();
  after.after = {{id, true}};
  after.placement.partitions = {"long"}, after.placement.args = {"--exclusive"};
  after.array = *ParseArraySpec("0-3");
  slurm_->started = 0;
  cluster_->Expect({after, ""});
  EXPECT_EQ(slurm_->started, 1);
  Submit(after);
  EXPECT_EQ(slurm_->started, 1);
}

TEST_F(SlurmClusterTest, WhatTheQueueSaidLastIsShownWhileTheControllerIsAway) {
  TestingSlurm::Job other;
  other.id = 7, other.user = UserName(), other.name = "by hand";
  slurm_->jobs.push_back(other);
  ASSERT_TRUE(cluster_->List({}));
  slurm_->away = true;
  const auto list = cluster_->List({});
  ASSERT_TRUE(list);
  ASSERT_EQ(list->size(), 1u);
  EXPECT_EQ(list->front().spec.id, "7");
}

TEST_F(SlurmClusterTest, WithNothingKnownAListIsAnErrorNotEmpty) {
  slurm_->away = true;
  const auto list = cluster_->List({});
  ASSERT_FALSE(list);
  EXPECT_EQ(list.error().code, ErrorCode::kUnavailable);
}

TEST_F(SlurmClusterTest, AForeignJobIsFoundByItsNumberAndCanBeActedOn) {
  TestingSlurm::Job other;
  other.id = 7, other.user = UserName(), other.name = "by hand";
  slurm_->jobs.push_back(other);
  const auto ids = cluster_->Resolve({"7"});
  ASSERT_TRUE(ids) << ids.error().message;
  EXPECT_EQ(ids->front(), "7");
  EXPECT_EQ(QueryOne("7").state, JobState::kQueued);
  EXPECT_EQ(QueryOne("7").spec.name, "by hand");
  ASSERT_TRUE(cluster_->Hold({"7"}));
  EXPECT_EQ(slurm_->jobs[0].reason, "JobHeldUser");
  ASSERT_TRUE(cluster_->Cancel({"7"}, "enough"));
  EXPECT_EQ(slurm_->jobs[0].state, "CANCELLED");
  EXPECT_EQ(cluster_->Remove({"7"}).error().code, ErrorCode::kConflict);
}

TEST_F(SlurmClusterTest, JobsOfOthersWithOurCommentAreNotOurs) {
  const std::string id = Submit(Spec());
  TestingSlurm::Job forged;
  forged.id = 999, forged.user = "mallory", forged.comment = "overcap:" + id, forged.state = "COMPLETED";
  slurm_->jobs.insert(slurm_->jobs.begin(), forged);
  EXPECT_EQ(QueryOne(id).state, JobState::kQueued);
}

TEST_F(SlurmClusterTest, SlurmsOwnNumberNamesOurJobToo) {
  const std::string id = Submit(Spec());
  const auto ids = cluster_->Resolve({"100"});
  ASSERT_TRUE(ids) << ids.error().message;
  EXPECT_EQ(ids->front(), id);
}

TEST_F(SlurmClusterTest, LastIsTheOneThatWasSubmittedLast) {
  JobSpec first = Spec(), second = Spec();
  first.id = MakeJobId("me", 1'800'000'000, 0xffffffff);
  second.id = MakeJobId("me", 1'800'000'000, 0x00000001);
  second.submitted_us = first.submitted_us + 1;
  Submit(first);
  Submit(second);
  const auto ids = cluster_->Resolve({"last"});
  ASSERT_TRUE(ids);
  EXPECT_EQ(ids->front(), second.id);
}

TEST_F(SlurmClusterTest, SlurmsOwnNumberMayHaveZerosInFrontWhichNoEndOfAnIdHas) {
  const std::string id = Submit(Spec());
  EXPECT_EQ(*cluster_->Resolve({"0000000000100"}), std::vector<std::string>{id});
  EXPECT_FALSE(cluster_->Resolve({"0000000000" + id.substr(id.size() - 1)}));
}

TEST_F(SlurmClusterTest, LastFollowsSlurmsNumbersAndNotTheClocksOfLoginNodes) {
  std::vector<JobSpec> specs = {Spec(), Spec(), Spec()};
  const int64_t seconds[] = {1'800'000'000, 1'800'003'600, 1'800'000'001};  // the second host's clock is fast
  for (size_t i = 0; i < specs.size(); ++i) {
    specs[i].id = MakeJobId("me", seconds[i], static_cast<uint32_t>(i));
    specs[i].submitted_us = seconds[i] * 1'000'000;
    Submit(specs[i]);
  }
  EXPECT_EQ(cluster_->Resolve({"last"})->front(), specs[2].id);
}

TEST_F(SlurmClusterTest, JobsOfAnotherClusterInTheSameFolderAreNotKnownHere) {
  JobSpec other = Spec();
  other.cluster = "elsewhere";
  SlurmJobFolder folder(FolderOf(other.id));
  ASSERT_TRUE(folder.Make(other, ""));
  EXPECT_EQ(cluster_->Query({other.id}).error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(cluster_->Resolve({other.id.substr(other.id.size() - 6)}));
  const auto list = cluster_->List({.all = true});
  ASSERT_TRUE(list);
  EXPECT_TRUE(list->empty());
}

}  // namespace
}  // namespace overcap
