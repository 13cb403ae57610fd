// SPDX-License-Identifier: Apache-2.0
#include "sys/strangers_files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys/testing/temp_folder.h"

namespace overcap {
namespace {

class StrangersFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    PosixFiles files;
    ASSERT_TRUE(files.MakeFolders(temp_ / "job/attempt-1"));
    ASSERT_TRUE(files.WriteAtomic(temp_ / "secret", "of another", false));
    ASSERT_TRUE(files.WriteAtomic(temp_ / "job/attempt-1/report", "lines", false));
  }

  TempFolder temp_;
  StrangersFiles files_{temp_ / "job"};
};

TEST_F(StrangersFilesTest, PlainFilesAreRead) {
  EXPECT_EQ(*files_.Read(temp_ / "job/attempt-1/report"), "lines");
  EXPECT_EQ(*files_.ReadRange(temp_ / "job/attempt-1/report", 2, 2), "ne");
  EXPECT_EQ(*files_.ReadRange(temp_ / "job/attempt-1/report", 99, 2), "");
  EXPECT_TRUE(files_.Exists(temp_ / "job/attempt-1"));
  EXPECT_EQ(*files_.List(temp_ / "job/attempt-1"), std::vector<std::string>{"report"});
  EXPECT_GT(files_.ModifiedUs(temp_ / "job/attempt-1/report"), 0);
}

TEST_F(StrangersFilesTest, LinksLeadNowhere) {
  ASSERT_EQ(symlink((temp_ / "secret").c_str(), (temp_ / "job/spec.json").c_str()), 0);
  ASSERT_EQ(symlink((temp_ / "").c_str(), (temp_ / "job/attempt-2").c_str()), 0);
  EXPECT_FALSE(files_.Read(temp_ / "job/spec.json"));
  EXPECT_FALSE(files_.Read(temp_ / "job/attempt-2/secret"));
  EXPECT_FALSE(files_.Read(temp_ / "job/../secret"));
  EXPECT_FALSE(files_.Read(temp_ / "secret"));
  EXPECT_FALSE(files_.Exists(temp_ / "job/attempt-2/secret"));
  EXPECT_FALSE(files_.List(temp_ / "job/attempt-2"));
  ASSERT_EQ(symlink((temp_ / "job").c_str(), (temp_ / "link").c_str()), 0);
  EXPECT_FALSE(StrangersFiles(temp_ / "link").Read(temp_ / "link/attempt-1/report"));
}

TEST_F(StrangersFilesTest, PipesAndFoldersAreNotReadAndLongFilesNotToTheirEnd) {
  ASSERT_EQ(mkfifo((temp_ / "job/pipe").c_str(), 0600), 0);
  EXPECT_FALSE(files_.Read(temp_ / "job/pipe"));
  EXPECT_FALSE(files_.Read(temp_ / "job/attempt-1"));
  ASSERT_EQ(truncate((temp_ / "job/attempt-1/report").c_str(), int64_t{1} << 40), 0);
  EXPECT_EQ(files_.Read(temp_ / "job/attempt-1/report")->size(), size_t{StrangersFiles::kMostBytes});
}

TEST_F(StrangersFilesTest, NothingIsWritten) {
  const std::string path = temp_ / "job/new";
  EXPECT_EQ(files_.WriteAtomic(path, "x", false).error().code, ErrorCode::kDenied);
  EXPECT_FALSE(files_.CreateExclusive(path, "x"));
  EXPECT_FALSE(files_.MakeFolders(path));
  EXPECT_FALSE(files_.Remove(temp_ / "job/attempt-1/report"));
  EXPECT_FALSE(files_.RemoveTree(temp_ / "job"));
  EXPECT_FALSE(files_.Exists(path));
  EXPECT_TRUE(files_.Exists(temp_ / "job/attempt-1/report"));
}

TEST_F(StrangersFilesTest, AFolderIsOfTheUserWhoMadeItOrTheLinkToIt) {
  EXPECT_FALSE(StrangerOf(temp_ / "job"));
  EXPECT_FALSE(StrangerOf(temp_ / "none"));
  ASSERT_EQ(symlink((temp_ / "job").c_str(), (temp_ / "mine").c_str()), 0);
  EXPECT_FALSE(StrangerOf(temp_ / "mine"));
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: folders of others need root";
  ASSERT_EQ(chown((temp_ / "job").c_str(), 61001, 61001), 0);
  EXPECT_EQ(StrangerOf(temp_ / "job"), uid_t{61001});
  EXPECT_EQ(StrangerOf(temp_ / "mine"), uid_t{61001});
  ASSERT_EQ(symlink((temp_ / "job").c_str(), (temp_ / "theirs").c_str()), 0);
  ASSERT_EQ(lchown((temp_ / "theirs").c_str(), 61002, 61002), 0);
  EXPECT_EQ(StrangerOf(temp_ / "theirs"), uid_t{61002});
}

}  // namespace
}  // namespace overcap
