// SPDX-License-Identifier: Apache-2.0
#include "snapshot/restore/file_verdict.h"

#include <gtest/gtest.h>

namespace overcap {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

class FileVerdictTest : public testing::Test {
 protected:
  FileVerdictTest() {
    wanted_.size = 10;
    wanted_.mode = 0644;
    wanted_.mtime_ns = 100 * kSecond + 1;
    wanted_.content = FileContent::Kind::kChunk;
    wanted_.id = Sha256Of("x");
    found_ = {7, 10, wanted_.mtime_ns, 200 * kSecond + 1, 0644, 0, 0};
    seen_.stamp = found_;
    seen_.content = wanted_.Content();
    knowledge_ = {.has_seen = true, .seen_began_ns = 300 * kSecond};
  }
  FileVerdict Judge(bool same_xattrs = true) {
    return JudgeFile(wanted_, found_, &seen_, same_xattrs, knowledge_, match_);
  }

  WantedEntry wanted_;
  SeenStamp found_;
  SeenEntry seen_;
  TargetKnowledge knowledge_;
  AttributeMatch match_;
};

TEST_F(FileVerdictTest, WhatTheCacheKnowsIsNotRead) {
  EXPECT_EQ(Judge(), FileVerdict::kSame);
  EXPECT_EQ(Judge(false), FileVerdict::kAttributes);
  wanted_.mode = 0600;
  EXPECT_EQ(Judge(), FileVerdict::kAttributes);
  wanted_.id = Sha256Of("y");
  EXPECT_EQ(Judge(), FileVerdict::kReplace);
}

TEST_F(FileVerdictTest, AnotherSizeIsAnotherContent) {
  found_.size = 11;
  EXPECT_EQ(Judge(), FileVerdict::kReplace);
}

TEST_F(FileVerdictTest, WhatTheStampDoesNotProveIsRead) {
  ++found_.ctime_ns;
  EXPECT_EQ(Judge(), FileVerdict::kRead);
  found_ = seen_.stamp;
  knowledge_.seen_began_ns = found_.ctime_ns;  // racily clean
  EXPECT_EQ(Judge(), FileVerdict::kRead);
  knowledge_.has_seen = false;
  EXPECT_EQ(Judge(), FileVerdict::kRead);
}

TEST_F(FileVerdictTest, AnUnfinishedRestoreIsTrustedForWhatItHasFinished) {
  knowledge_ = {.resumes = true, .resumes_began_ns = 150 * kSecond};
  EXPECT_EQ(Judge(), FileVerdict::kSame);
  found_.mtime_ns = 200 * kSecond;  // not finished
  EXPECT_EQ(Judge(), FileVerdict::kRead);
  found_ = seen_.stamp;
  found_.ctime_ns = 149 * kSecond;  // was there before
  EXPECT_EQ(Judge(), FileVerdict::kRead);
  found_ = seen_.stamp;
  found_.mode = 0600;
  EXPECT_EQ(Judge(), FileVerdict::kRead);
}

TEST_F(FileVerdictTest, OwnersAndTimesCountWhereTheyAreAskedFor) {
  wanted_.uid = 5;
  EXPECT_EQ(Judge(), FileVerdict::kSame);
  match_.owners = true;
  EXPECT_EQ(Judge(), FileVerdict::kAttributes);
  match_ = {.times = false};
  wanted_.mtime_ns = 1;
  EXPECT_EQ(Judge(), FileVerdict::kSame);
}

}  // namespace
}  // namespace overcap
