// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/job_sender.h"

#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>

#include "base/text.h"
#include "clusters/slurm/job_planner.h"
#include "clusters/testing/testing_slurm.h"

namespace overcap {
namespace {

using Submit = TestingSlurm::Submit;

class JobSenderTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(mkdtemp(root_), nullptr);
    slurm_ = std::make_unique<TestingSlurm>(root_);
    spec_.id = "me_1800000000_00000001";
    spec_.user = "me";
    spec_.cluster = "sky";
    spec_.command = {"true"};
    spec_.workdir = "/tmp";
    spec_.submitted_us = 1'800'000'000'000'000;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  SbatchPlan Plan() { return *JobPlanner(slurm_.get()).Plan(spec_, {}); }
  Result<SlurmHandle> Send(const SbatchPlan* expected = nullptr) {
    SlurmQueue queue(slurm_.get());
    JobSender sender(slurm_.get(), &queue);
    if (expected != nullptr) sender.Expect(expected->argv);
    const SbatchPlan plan = Plan();
    OC_TRY(made, Folder().Make(spec_, plan.script));
    return sender.Send(spec_, made, plan, JobPlanner(slurm_.get()).Named(spec_));
  }
  SlurmJobFolder Folder() const { return SlurmJobFolder(slurm_->JobFolder(spec_.id)); }
  int Sent() const {
    return static_cast<int>(std::count_if(slurm_->calls.begin(), slurm_->calls.end(),
                                          [](const auto& argv) { return argv[0] == "sbatch"; }));
  }

  char root_[40] = "/tmp/overcap_sender_XXXXXX";
  std::unique_ptr<TestingSlurm> slurm_;
  JobSpec spec_;
};

TEST_F(JobSenderTest, OneCallSendsAJobAndItsNumberIsKept) {
  const auto handle = Send();
  ASSERT_TRUE(handle) << handle.error().message;
  EXPECT_EQ(handle->slurm_id, 100);
  EXPECT_EQ(slurm_->calls.size(), 1u) << "nobody else was asked";
  EXPECT_EQ(Folder().Handle()->slurm_id, 100);
  EXPECT_EQ(*Folder().Spec(), spec_);
}

TEST_F(JobSenderTest, TheOneThatWasExpectedIsGivenTheScript) {
  const SbatchPlan plan = Plan();
  ASSERT_TRUE(Send(&plan));
  EXPECT_EQ(slurm_->started, 1);
  EXPECT_EQ(slurm_->scripts, std::vector<std::string>{plan.script});
}

TEST_F(JobSenderTest, WhatWasExpectedOtherwiseIsNotUsed) {
  SbatchPlan other = Plan();
  other.argv.push_back("--qos=other");
  ASSERT_TRUE(Send(&other));
  EXPECT_EQ(slurm_->started, 2);
  ASSERT_EQ(slurm_->calls.size(), 1u);
  EXPECT_EQ(slurm_->calls[0], Plan().argv);
}

TEST_F(JobSenderTest, SendingAgainSendsNothing) {
  ASSERT_TRUE(Send());
  const auto again = Send();
  ASSERT_TRUE(again);
  EXPECT_EQ(again->slurm_id, 100);
  EXPECT_EQ(Sent(), 1);
  spec_.command = {"false"};
  EXPECT_EQ(Send().error().code, ErrorCode::kConflict);
}

TEST_F(JobSenderTest, ARefusedJobLeavesNothing) {
  slurm_->next = Submit::kRefuses;
  const auto handle = Send();
  ASSERT_FALSE(handle);
  EXPECT_EQ(handle.error().code, ErrorCode::kUsage);
  EXPECT_FALSE(std::filesystem::exists(Folder().path()));
}

TEST_F(JobSenderTest, ALostAnswerIsFoundByTheComment) {
  slurm_->next = Submit::kIsTakenWithoutAnswer;
  const auto handle = Send();
  ASSERT_TRUE(handle) << handle.error().message;
  EXPECT_EQ(handle->slurm_id, 100);
  EXPECT_EQ(slurm_->jobs.size(), 1u);
}

TEST_F(JobSenderTest, WhenNobodyKnowsWhetherItWasTakenItCanBeSentAgain) {
  for (const Submit how : {Submit::kIsLostWithoutAnswer, Submit::kBreaks}) {
    slurm_->next = how;
    const auto handle = Send();
    ASSERT_FALSE(handle);
    EXPECT_EQ(handle.error().code, ErrorCode::kUnavailable);
    EXPECT_TRUE(Folder().Exists()) << "the job's id is spoken for";
  }
  const auto again = Send();
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(slurm_->jobs.size(), 1u);
}

TEST_F(JobSenderTest, AJobThatWasTakenIsNotSentTwiceThoughTheControllerIsAwayBetween) {
  slurm_->next = Submit::kIsTakenWithoutAnswer;
  slurm_->away = true;
  EXPECT_EQ(Send().error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(Send().error().code, ErrorCode::kUnavailable) << "it cannot be looked for, so it is not sent";
  slurm_->away = false;
  const auto handle = Send();
  ASSERT_TRUE(handle) << handle.error().message;
  EXPECT_EQ(handle->slurm_id, 100);
  EXPECT_EQ(Sent(), 1);
}

TEST_F(JobSenderTest, OneThatDiedBeforeItCouldKeepTheNumberIsFound) {
  ASSERT_TRUE(Send());
  std::filesystem::remove(Folder().path() + "/handle.json");
  const auto handle = Send();
  ASSERT_TRUE(handle);
  EXPECT_EQ(handle->slurm_id, 100);
  EXPECT_EQ(Sent(), 1);
}

TEST_F(JobSenderTest, OneThatDiedBeforeItSentAnythingIsSent) {
  std::filesystem::create_directories(Folder().path());
  ASSERT_TRUE(Send());
  EXPECT_EQ(slurm_->jobs.size(), 1u);
}

TEST_F(JobSenderTest, WhileOneSendsItOthersSeeThatAndDoNotSendIt) {
  slurm_->during_submit = [&] {
    slurm_->during_submit = {};
    EXPECT_TRUE(Folder().Evidence(spec_).sending);
    EXPECT_EQ(Send().error().code, ErrorCode::kUnavailable);
  };
  ASSERT_TRUE(Send());
  EXPECT_FALSE(Folder().Evidence(spec_).sending);
  EXPECT_EQ(Sent(), 1);
}

TEST_F(JobSenderTest, TheFirstNumberCountsAndTheSecondJobIsCancelled) {
  slurm_->during_submit = [&] {
    SlurmJobFolder folder = Folder();
    ASSERT_TRUE(folder.WriteHandle({"sky", 42, "agent", 1}));
  };
  const auto handle = Send();
  ASSERT_TRUE(handle);
  EXPECT_EQ(handle->slurm_id, 42);
  EXPECT_EQ(slurm_->jobs[0].state, "CANCELLED");
}

TEST_F(JobSenderTest, ValuesOfTheSubmittersEnvironmentDoNotTravelThroughSlurm) {
  setenv("OVERCAP_TEST_SECRET", "hunter2", 1);
  ASSERT_TRUE(Send());
  unsetenv("OVERCAP_TEST_SECRET");
  for (const std::string& entry : slurm_->environment) EXPECT_EQ(entry.find("hunter2"), std::string::npos);
  const auto has = [&](std::string_view start) {
    return std::any_of(slurm_->environment.begin(), slurm_->environment.end(),
                       [&](const std::string& entry) { return entry.starts_with(start); });
  };
  EXPECT_TRUE(has("PATH="));
  EXPECT_TRUE(has(StrCat("OVERCAP_HOME=", root_)));
}

}  // namespace
}  // namespace overcap
