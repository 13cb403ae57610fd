// SPDX-License-Identifier: Apache-2.0
#include "snapshot/testing/compare_trees.h"

#include <fcntl.h>
#include <filesystem>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "snapshot/testing/sample_folder.h"
#include "sys/testing/temp_folder.h"

namespace overcap {
namespace {

namespace fs = std::filesystem;
using Lines = std::vector<std::string>;

class CompareTreesTest : public testing::Test {
 protected:
  CompareTreesTest() {
    for (const char* side : {"left", "right"}) {
      PutFile(temp_ / side + "/folder/file", "content");
      PutFile(temp_ / side + "/other", "content");
      fs::create_symlink("other", temp_ / side + "/link");
    }
    SetTimes();
  }
  void SetTimes() {
    const timespec times[2] = {{1, 2}, {3, 4}};
    for (const char* side : {"left", "right"}) {
      for (const char* name : {"/folder/file", "/other", "/link", "/folder", ""}) {
        ASSERT_EQ(utimensat(AT_FDCWD, (temp_ / side + name).c_str(), times, AT_SYMLINK_NOFOLLOW), 0);
      }
    }
  }
  Lines Compare() { return CompareTrees(temp_ / "left", temp_ / "right"); }
  std::string Right(const std::string& name) { return temp_ / "right/" + name; }

  TempFolder temp_;
};

TEST_F(CompareTreesTest, EqualFoldersHaveNoDifferences) {
  EXPECT_EQ(Compare(), Lines{});
}

TEST_F(CompareTreesTest, SeesOneByte) {
  PutFile(Right("folder/file"), "contend");
  SetTimes();
  EXPECT_EQ(Compare(), Lines{"folder/file: has another content at byte 0"});
}

TEST_F(CompareTreesTest, SeesANanosecond) {
  const timespec times[2] = {{1, 2}, {3, 5}};
  ASSERT_EQ(utimensat(AT_FDCWD, Right("link").c_str(), times, AT_SYMLINK_NOFOLLOW), 0);
  EXPECT_EQ(Compare(), Lines{"link: changed at 3.000000004 and at 3.000000005"});
}

TEST_F(CompareTreesTest, SeesModesAndNames) {
  ASSERT_EQ(chmod(Right("other").c_str(), 0600), 0);
  PutFile(Right("folder/more"), "");
  SetTimes();
  EXPECT_EQ(Compare(), (Lines{"folder/more: is only on the right", "other: has mode 0644 and 0600"}));
}

TEST_F(CompareTreesTest, SeesWhichNamesAreOneFile) {
  fs::remove(Right("folder/file"));
  fs::create_hard_link(Right("other"), Right("folder/file"));
  SetTimes();
  EXPECT_EQ(Compare(), Lines{"other: is the same file as other on the left, as folder/file on the right"});
}

TEST_F(CompareTreesTest, SeesAttributesAndTargets) {
  if (setxattr(Right("other").c_str(), "user.x", "1", 1, 0) != 0)
    GTEST_SKIP() << "NOT TESTED: no xattrs here";
  fs::remove(Right("link"));
  fs::create_symlink("else", Right("link"));
  SetTimes();
  EXPECT_EQ(Compare(), (Lines{"link: points to other and to else", "other: has other extended attributes"}));
}

}  // namespace
}  // namespace overcap
