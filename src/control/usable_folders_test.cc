// SPDX-License-Identifier: Apache-2.0
#include "control/usable_folders.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "sys/posix_files.h"
#include "sys/testing/temp_folder.h"

namespace overcap {
namespace {

TEST(UsableFolders, LocalDisksThatCanBeWrittenAreFoundAmongMounts) {
  EXPECT_EQ(LocalMounts("proc /proc proc rw 0 0\n"
                        "/dev/sda1 / ext4 rw,relatime 0 0\n"
                        "/dev/sda2 /boot ext4 rw 0 0\n"
                        "server:/home /home nfs4 rw 0 0\n"
                        "/dev/nvme0n1 /my\\040disk xfs rw 0 0\n"
                        "/dev/sr0 /cd ext4 ro 0 0\n"
                        "broken line\n"),
            (std::vector<std::string>{"/", "/my disk"}));
  EXPECT_TRUE(LocalMounts("").empty());
}

TEST(UsableFolders, OnePerDiskTheLargestFirst) {
  EXPECT_EQ(
      BestFolders({{"/tmp", 10, 1}, {"/var/tmp", 10, 1}, {"/data", 50, 2}, {"/x", 5, 3}, {"/y", 1, 4}}, 3),
      (std::vector<UsableFolder>{{"/data", 50, 2}, {"/tmp", 10, 1}, {"/x", 5, 3}}));
}

TEST(UsableFolders, AMissingDiskIsNotMadeUpAndOthersAreNamed) {
  std::string made;
  const auto result = MakeWorkFolder("/no-such-disk-here/ann/work", "ann", "", &made);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(result.error().message, "there is no '/no-such-disk-here' on this machine");
  EXPECT_NE(result.error().hint.find(" free)"), std::string::npos) << result.error().hint;
}

TEST(UsableFolders, WhatIsMissingIsMadeAndTheTopmostNamed) {
  const TempFolder temp;
  std::string made;
  ASSERT_TRUE(MakeWorkFolder(temp.Path() + "/a/b/c", "ann", "", &made));
  EXPECT_EQ(made, temp.Path() + "/a");
  EXPECT_TRUE(PosixFiles().Exists(temp.Path() + "/a/b/c"));
  ASSERT_TRUE(MakeWorkFolder(temp.Path() + "/a/b/c", "ann", "", &made));
  EXPECT_EQ(made, "");
  ASSERT_TRUE(PosixFiles().WriteAtomic(temp.Path() + "/file", "", false));
  EXPECT_EQ(MakeWorkFolder(temp.Path() + "/file/x", "ann", "", &made).error().code, ErrorCode::kUsage);
}

}  // namespace
}  // namespace overcap
