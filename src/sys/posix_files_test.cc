// SPDX-License-Identifier: Apache-2.0
#include "sys/posix_files.h"

#include <atomic>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include "sys/testing/temp_folder.h"

namespace overcap {
namespace {

mode_t ModeOf(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
}

TEST(PosixFilesTest, FilesAndFoldersArePrivate) {
  TempFolder root;
  PosixFiles files;
  ASSERT_TRUE(files.MakeFolders(root / "x"));
  ASSERT_TRUE(files.WriteAtomic(root / "a", "", false));
  ASSERT_TRUE(files.CreateExclusive(root / "b", ""));
  ASSERT_TRUE(files.OpenAppend(root / "c"));
  EXPECT_EQ(ModeOf(root / "x"), 0700u);
  for (const char* name : {"a", "b", "c"}) EXPECT_EQ(ModeOf(root / name), 0600u) << name;
}

TEST(PosixFilesTest, OfManyThreadsOneCreatesAndNoReaderSeesAHalfFile) {
  TempFolder root;
  PosixFiles files;
  const std::string content(100'000, 'x');
  std::atomic<int> winners{0};
  std::atomic<int> torn{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      if (files.CreateExclusive(root / "claim", content)) ++winners;
      if (files.Read(root / "claim").value_or("") != content) ++torn;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(winners, 1);
  EXPECT_EQ(torn, 0);
}

TEST(PosixFilesTest, RemoveTreeFollowsNoLinkAndOpensClosedFolders) {
  TempFolder root;
  PosixFiles files;
  ASSERT_TRUE(files.MakeFolders(root / "kept"));
  ASSERT_TRUE(files.WriteAtomic(root / "kept/a", "", false));
  ASSERT_TRUE(files.MakeFolders(root / "x/closed"));
  ASSERT_TRUE(files.WriteAtomic(root / "x/closed/b", "", false));
  ASSERT_EQ(symlink((root / "kept").c_str(), (root / "x/link").c_str()), 0);
  ASSERT_EQ(chmod((root / "x/closed").c_str(), 0), 0);
  ASSERT_EQ(chmod((root / "x").c_str(), 0500), 0);
  EXPECT_TRUE(files.RemoveTree(root / "x"));
  EXPECT_FALSE(files.Exists(root / "x"));
  EXPECT_TRUE(files.Exists(root / "kept/a"));
}

TEST(PosixFilesTest, AFullDiskIsUnavailableWithAHint) {
  PosixFiles files;
  auto file = files.OpenAppend("/dev/full");
  if (!file) GTEST_SKIP() << "no /dev/full here";
  const auto result = (*file)->Append("x");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kUnavailable);
  EXPECT_FALSE(result.error().hint.empty());
}

TEST(PosixFilesTest, APipeInAFilesPlaceKeepsNobodyWaiting) {
  TempFolder root;
  ASSERT_EQ(mkfifo((root / "pipe").c_str(), 0600), 0);
  EXPECT_FALSE(PosixFiles().Read(root / "pipe"));
}

TEST(PosixFilesTest, ReadsFilesThatClaimToBeEmpty) {
  EXPECT_NE(PosixFiles().Read("/proc/self/status").value_or("").find("Pid:"), std::string::npos);
}

}  // namespace
}  // namespace overcap
