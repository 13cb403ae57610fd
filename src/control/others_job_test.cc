// SPDX-License-Identifier: Apache-2.0
#include "control/others_job.h"

#include <gtest/gtest.h>

#include "sys/user.h"

namespace overcap {
namespace {

constexpr JobVerb kAll[] = {JobVerb::kQuery, JobVerb::kTasks,  JobVerb::kLogs,
                            JobVerb::kEnter, JobVerb::kRemove, JobVerb::kResubmit};

TEST(OthersJob, TheOwnerTouchesTheFilesWithEveryVerb) {
  for (const JobVerb verb : kAll) {
    EXPECT_EQ(RightToFiles({.owner = true, .root = false, .shared_engine = true}, verb), FilesRight::kOwn);
    EXPECT_EQ(RightToFiles({.owner = true, .root = true, .shared_engine = false}, verb), FilesRight::kOwn);
  }
}

TEST(OthersJob, RootOfASharedEngineBecomesTheOwnerAndRunsNothingAgain) {
  const FilesCaller root{.owner = false, .root = true, .shared_engine = true};
  for (const JobVerb verb : kAll) {
    EXPECT_EQ(RightToFiles(root, verb),
              verb == JobVerb::kResubmit ? FilesRight::kRefused : FilesRight::kAsOwner);
  }
}

TEST(OthersJob, AllOthersHaveTheRecordAndNothingElse) {
  for (const FilesCaller& caller : {FilesCaller{.owner = false, .root = false, .shared_engine = true},
                                    FilesCaller{.owner = false, .root = false, .shared_engine = false},
                                    FilesCaller{.owner = false, .root = true, .shared_engine = false}}) {
    for (const JobVerb verb : kAll) {
      const bool of_record = verb == JobVerb::kQuery || verb == JobVerb::kRemove;
      EXPECT_EQ(RightToFiles(caller, verb), of_record ? FilesRight::kRecordOnly : FilesRight::kRefused);
    }
  }
}

TEST(OthersJob, ARecordWithAFolderOrOfThisUserIsNotOfAnother) {
  JobRecord record;
  record.spec.user = UserName() + "x";
  EXPECT_TRUE(IsOthers(record));
  EXPECT_FALSE(CheckNotOthers(record));
  record.dir = "/somewhere";
  EXPECT_FALSE(IsOthers(record));
  record.dir.clear();
  record.spec.user = UserName();
  EXPECT_FALSE(IsOthers(record));
}

TEST(OthersJob, AnOwnersClientFindsTheEngineByTheNameThatNeedsNoConfiguration) {
  Config config;
  config.clusters["lab"].driver = "system";
  EXPECT_EQ(ImpliedNameOf(config, "lab"), "system");
  EXPECT_EQ(ImpliedNameOf(config, "other"), "other");
}

TEST(OthersJob, ARefusalNamesTheOwnerAndTheVerb) {
  JobRecord record;
  record.spec.id = "ann_17_0000beef";
  record.spec.user = UserName() + "x";
  const auto refused = RightToFilesOf(record, false, JobVerb::kResubmit);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kDenied);
  EXPECT_NE(refused.error().message.find(record.spec.user + "', who alone can run it again"),
            std::string::npos);
}

}  // namespace
}  // namespace overcap
