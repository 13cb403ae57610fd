// SPDX-License-Identifier: Apache-2.0
#include "launch/logs/log_watch.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "sys/testing/temp_folder.h"

namespace overcap {
namespace {

constexpr int kPatienceMs = 20'000;

void Touch(const TempFolder& folder) {
  const Fd file(open((folder / "file").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  EXPECT_EQ(write(file.Get(), "x", 1), 1);
}

// What to wait for: whether it would be told, and until when.
std::pair<bool, int64_t> Waits(const LogWatch& watch) {
  std::vector<pollfd> fds;
  const int64_t until = watch.Prepare(&fds);
  return {fds.size() == 1, until};
}

// Looks that find these, one after the other; nothing after the last.
class Found {
 public:
  explicit Found(std::vector<bool> results) : results_(std::move(results)) {}
  std::function<bool()> Look() {
    return [this] { return looks++ < results_.size() && results_[looks - 1]; };
  }
  size_t looks = 0;

 private:
  std::vector<bool> results_;
};

TEST(LogWatch, IsToldAtOnceOfTheFirstChange) {
  const TempFolder folder;
  LogWatch watch(folder.Path(), 1, 0);
  Found quiet({});
  EXPECT_FALSE(watch.Look(5, quiet.Look()));
  EXPECT_EQ(quiet.looks, 0u);  // nothing was told
  Touch(folder);
  std::vector<pollfd> fds;
  watch.Prepare(&fds);
  ASSERT_EQ(fds.size(), 1u);
  EXPECT_EQ(poll(fds.data(), 1, kPatienceMs), 1);
  Found found({true});
  EXPECT_TRUE(watch.Look(10, found.Look()));
}

TEST(LogWatch, LooksEveryMillisecondWhileSomethingGrowsAndIsToldAgainWhenNothingDoes) {
  const TempFolder folder;
  LogWatch watch(folder.Path(), 1, 0);
  EXPECT_EQ(Waits(watch), std::pair(true, LogWatch::kAnywayUs));
  Touch(folder);
  Found growing({true, true, false});
  EXPECT_TRUE(watch.Look(10, growing.Look()));
  for (int i = 0; i < 1000; ++i) Touch(folder);  // does not wake anybody
  EXPECT_EQ(Waits(watch), std::pair(false, int64_t{1010}));
  EXPECT_FALSE(watch.Look(1009, growing.Look()));
  EXPECT_EQ(growing.looks, 1u);
  EXPECT_TRUE(watch.Look(1010, growing.Look()));
  EXPECT_FALSE(watch.Look(2010, growing.Look()));
  EXPECT_EQ(growing.looks, 4u);  // once more after it asked to be told
  EXPECT_EQ(Waits(watch), std::pair(true, 2010 + LogWatch::kAnywayUs));
  Found none({});
  EXPECT_FALSE(watch.Look(2020, none.Look()));
  EXPECT_EQ(none.looks, 0u);  // the thousand changes of before are not told now
}

TEST(LogWatch, WhatChangesWhileItAsksToBeToldIsSeen) {
  const TempFolder folder;
  LogWatch watch(folder.Path(), 1, 0);
  Touch(folder);
  Found late({false, true});
  EXPECT_TRUE(watch.Look(10, late.Look()));
}

TEST(LogWatch, LooksOnceASecondEvenWhenNothingIsTold) {
  const TempFolder folder;
  LogWatch watch(folder.Path(), 1, 0);
  Found found({true});
  EXPECT_TRUE(watch.Look(LogWatch::kAnywayUs, found.Look()));
  EXPECT_EQ(Waits(watch), std::pair(false, LogWatch::kAnywayUs + LogWatch::kStepUs));
}

TEST(LogWatch, WhereNobodyTellsTheStepsGetLongerWhileNothingComes) {
  const TempFolder folder;
  LogWatch watch(folder.Path(), 1, 0, false);
  int64_t now_us = 0;
  std::vector<int64_t> steps;
  Found found({});
  for (int i = 0; i < 8; ++i) {
    const auto [told, until] = Waits(watch);
    EXPECT_FALSE(told);
    steps.push_back(until - now_us);
    now_us = until;
    EXPECT_FALSE(watch.Look(now_us, found.Look()));
  }
  EXPECT_EQ(steps, (std::vector<int64_t>{1000, 2000, 4000, 8000, 16000, 32000, 50000, 50000}));
  Found again({true});
  EXPECT_TRUE(watch.Look(now_us + 50'000, again.Look()));
  EXPECT_EQ(Waits(watch).second, now_us + 51'000);
}

TEST(LogWatch, ManyFilesAreLookedAtLessOften) {
  const TempFolder folder;
  const LogWatch watch(folder.Path(), 512, 0, false);
  EXPECT_EQ(Waits(watch).second, 5000);
}

TEST(LogWatch, AFolderThatCannotBeWatchedIsLookedAtByTheClock) {
  const LogWatch watch("/no such folder", 1, 0);
  EXPECT_EQ(Waits(watch), std::pair(false, int64_t{1000}));
}

}  // namespace
}  // namespace overcap
