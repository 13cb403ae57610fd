// SPDX-License-Identifier: Apache-2.0
#include "control/folder_watch.h"

#include <algorithm>
#include <chrono>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys/fd.h"
#include "sys/posix_files.h"
#include "sys/testing/temp_folder.h"

namespace overcap {
namespace {

bool IgnoresOwn(std::string_view path, bool) {
  return path == ".overcap" || path.ends_with(".tmp");
}

void Write(const std::string& path) {
  const Fd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  ASSERT_EQ(write(fd.Get(), "x", 1), 1);
}

using Watcher = Result<std::unique_ptr<FolderWatch>> (*)(const std::string&, WatchIgnores);

class FolderWatches : public testing::TestWithParam<Watcher> {
 protected:
  void SetUp() override {
    ASSERT_EQ(mkdir((temp_ / "a").c_str(), 0700), 0);
    ASSERT_EQ(mkdir((temp_ / "a/b").c_str(), 0700), 0);
    ASSERT_EQ(mkdir((temp_ / ".overcap").c_str(), 0700), 0);
    auto watch = GetParam()(temp_.Path(), IgnoresOwn);
    if (!watch) GTEST_SKIP() << "NOT TESTED: " << watch.error().message;
    watch_ = std::move(*watch);
  }

  // All news until one of them says that `folder` has some; false when nobody does.
  bool Hears(const std::string& folder) {
    for (int i = 0; i < 100; ++i) {
      pollfd waits{watch_->PollFd(), POLLIN, 0};
      poll(&waits, 1, 100);
      const auto news = watch_->Take();
      if (!news) return false;
      deep_.insert(deep_.end(), news->deep.begin(), news->deep.end());
      heard_.insert(heard_.end(), news->folders.begin(), news->folders.end());
      if (std::find(heard_.begin(), heard_.end(), folder) != heard_.end()) return true;
    }
    return false;
  }

  TempFolder temp_;
  std::unique_ptr<FolderWatch> watch_;
  std::vector<std::string> heard_, deep_;
};

TEST_P(FolderWatches, AWriteIsToldByItsFolder) {
  Write(temp_ / "a/b/f");
  EXPECT_TRUE(Hears("a/b"));
}

TEST_P(FolderWatches, WhatIsMadeInANewFolderIsToldOrTheFolderIsNew) {
  ASSERT_EQ(mkdir((temp_ / "n").c_str(), 0700), 0);
  ASSERT_TRUE(Hears(""));
  EXPECT_EQ(deep_, std::vector<std::string>{"n"});
  Write(temp_ / "n/f");
  EXPECT_TRUE(Hears("n"));
}

TEST_P(FolderWatches, AMovedFolderIsToldUnderItsNewName) {
  ASSERT_EQ(rename((temp_ / "a").c_str(), (temp_ / "z").c_str()), 0);
  ASSERT_TRUE(Hears(""));
  heard_.clear();
  Write(temp_ / "z/b/f");
  EXPECT_TRUE(Hears("z/b"));
}

TEST_P(FolderWatches, WhatIsIgnoredIsNotTold) {
  Write(temp_ / ".overcap/seen");
  Write(temp_ / "a/x.tmp");
  Write(temp_ / "a/b/f");
  EXPECT_TRUE(Hears("a/b"));
  EXPECT_EQ(std::find(heard_.begin(), heard_.end(), ".overcap"), heard_.end());
  EXPECT_EQ(std::find(heard_.begin(), heard_.end(), "a"), heard_.end());
}

TEST_P(FolderWatches, AFolderThatIsGoneEndsIt) {
  ASSERT_EQ(rename(temp_.Path().c_str(), (temp_.Path() + ".moved").c_str()), 0);
  bool ended = false;
  for (int i = 0; i < 100 && !ended; ++i) {
    pollfd waits{watch_->PollFd(), POLLIN, 0};
    poll(&waits, 1, 20);
    ended = !watch_->Take();
  }
  EXPECT_TRUE(ended);
  ASSERT_EQ(rename((temp_.Path() + ".moved").c_str(), temp_.Path().c_str()), 0);
}

INSTANTIATE_TEST_SUITE_P(All, FolderWatches, testing::Values(&WatchByInotify, &WatchByFanotify));

TEST(FolderWatch, AFolderThatIsMissingCannotBeWatched) {
  EXPECT_FALSE(WatchFolder("/nowhere/at/all", IgnoresOwn));
}

}  // namespace
}  // namespace overcap
