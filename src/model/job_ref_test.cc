// SPDX-License-Identifier: Apache-2.0
#include "model/job_ref.h"

#include <gtest/gtest.h>

namespace overcap {
namespace {

const std::vector<JobRefCandidate> kJobs = {
    {"ann_1563257309_60ce2fc7"}, {"ann_1563257311_deadbeef"}, {"ann_1563257310_11112fc7"}};

std::string CommandOf(std::string_view id) {
  return "train " + std::string(id.substr(id.size() - 4));
}

Result<std::string> Resolve(std::string_view ref) {
  return ResolveJobRef(ref, kJobs, CommandOf);
}

TEST(JobRef, AWholeIdNamesItself) {
  EXPECT_EQ(*Resolve("ann_1563257309_60ce2fc7"), "ann_1563257309_60ce2fc7");
}

TEST(JobRef, TheLastCharactersSuffice) {
  EXPECT_EQ(*Resolve("e2fc7"), "ann_1563257309_60ce2fc7");
}

TEST(JobRef, LastIsTheOneSubmittedLastWhateverTheClockInItsIdSays) {
  EXPECT_EQ(*Resolve("last"), "ann_1563257310_11112fc7");
}

TEST(JobRef, AnAmbiguousSuffixListsTheCandidatesWithTheirCommands) {
  const auto id = Resolve("2fc7");
  ASSERT_FALSE(id);
  EXPECT_EQ(id.error().code, ErrorCode::kConflict);
  EXPECT_EQ(id.error().message,
            "'2fc7' is the end of 2 job ids:\n"
            "  ann_1563257310_11112fc7  train 2fc7\n"
            "  ann_1563257309_60ce2fc7  train 2fc7");
}

TEST(JobRef, OfManyCandidatesTheNewestTenAreListed) {
  std::vector<std::string> ids;
  for (int i = 10; i < 30; ++i) ids.push_back("ann_15632573" + std::to_string(i) + "_deadbeef");
  std::vector<JobRefCandidate> jobs;
  for (const std::string& id : ids) jobs.push_back({id});
  const std::string message = ResolveJobRef("beef", jobs, CommandOf).error().message;
  EXPECT_NE(message.find("ids:\n  ann_1563257329_deadbeef"), std::string::npos) << message;
  EXPECT_EQ(message.find(ids[9]), std::string::npos) << message;
  EXPECT_TRUE(message.ends_with("\n  and 10 older ones")) << message;
}

TEST(JobRef, ANameIsNoIdButLeadsToOne) {
  const std::vector<JobRefCandidate> jobs = {{"ann_1563257309_60ce2fc7", "exp1"},
                                             {"ann_1563257310_11112fc7", "exp1"}};
  const auto id = ResolveJobRef("exp1", jobs, CommandOf);
  ASSERT_FALSE(id);
  EXPECT_EQ(id.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(id.error().hint, "a job is named 'exp1': its id is ann_1563257310_11112fc7");
}

TEST(JobRef, AnUnknownOneSuggestsTheNearest) {
  const auto id = Resolve("deedbeef");
  ASSERT_FALSE(id);
  EXPECT_EQ(id.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(id.error().hint, "did you mean 'ann_1563257311_deadbeef' (train beef)?");
}

TEST(JobRef, WithoutJobsThereIsNoLast) {
  const auto id = ResolveJobRef("last", {}, CommandOf);
  ASSERT_FALSE(id);
  EXPECT_EQ(id.error().code, ErrorCode::kNotFound);
}

TEST(JobRef, AnEmptyNameIsNoSuffixOfEverything) {
  const auto id = Resolve("");
  ASSERT_FALSE(id);
  EXPECT_EQ(id.error().code, ErrorCode::kUsage);
}

}  // namespace
}  // namespace overcap
