// SPDX-License-Identifier: Apache-2.0
#include "control/promise_record.h"

#include <filesystem>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/text.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

constexpr int64_t kMinute = 60'000'000, kNow = 1'800'000'000'000'000;

StartPromise Made(std::string job, int64_t p50_min = 10, int64_t p90_min = 30) {
  return {"sky", std::move(job), "short", kNow, kNow + p50_min * kMinute, kNow + p90_min * kMinute, 200, 7};
}

KeptPromise Started(int64_t after_min) {
  return {Made("j"), PromiseOutcome{"sky", "j", kNow + after_min * kMinute, 0, kNow}};
}

class Promises : public testing::Test {
 protected:
  Promises() : root_(StrCat(testing::TempDir(), "promises-", getpid())) {
    std::filesystem::remove_all(root_);
  }
  ~Promises() override { std::filesystem::remove_all(root_); }
  std::string root_;
};

TEST(PromiseJudgement, HoldsUpToAMinuteAfterTheTimeThatWasTold) {
  const auto p50 = [](const KeptPromise& kept, int64_t now_us = kNow) {
    return Judge(kept, kept.promise.p50_us, now_us);
  };
  EXPECT_EQ(p50(Started(5)), Kept::kHeld);
  EXPECT_EQ(p50(Started(11)), Kept::kHeld);
  EXPECT_EQ(p50(Started(12)), Kept::kBroken);
  EXPECT_EQ(Judge(Started(12), Started(12).promise.p90_us, kNow), Kept::kHeld);
}

TEST(PromiseJudgement, IsOpenWhileItWaitsAndBrokenWhenTheTimeHasPassed) {
  const KeptPromise open{Made("j"), {}};
  EXPECT_EQ(Judge(open, open.promise.p50_us, kNow + 5 * kMinute), Kept::kOpen);
  EXPECT_EQ(Judge(open, open.promise.p50_us, kNow + 20 * kMinute), Kept::kBroken);
  EXPECT_EQ(Judge(open, open.promise.p90_us, kNow + 20 * kMinute), Kept::kOpen);
}

TEST(PromiseJudgement, DoesNotCountWhenTheJobWasGoneBefore) {
  const KeptPromise gone{Made("j"), PromiseOutcome{"sky", "j", 0, kNow + 20 * kMinute, kNow}};
  EXPECT_EQ(Judge(gone, gone.promise.p50_us, kNow), Kept::kBroken);
  EXPECT_EQ(Judge(gone, gone.promise.p90_us, kNow), Kept::kVoid);
}

TEST(PromiseText, WhatIsWrittenIsReadAndRubbishIsSkipped) {
  const PromiseOutcome outcome{"sky", "a", kNow + kMinute, 0, kNow + 2 * kMinute};
  const std::string text = StrCat("nonsense\n{\"promise\":1}\n", PromiseLine(Made("a")),
                                  PromiseLine(Made("b")), OutcomeLine(outcome), "{\"promise\":1,\"jo");
  const auto kept = ReadPromises(text);
  ASSERT_EQ(kept.size(), 2U);
  EXPECT_EQ(kept[0].promise, Made("a"));
  EXPECT_EQ(kept[0].outcome, outcome);
  EXPECT_FALSE(kept[1].outcome);
}

TEST(PromiseText, AnOutcomeIsAboutPromisesMadeBeforeIt) {
  StartPromise later = Made("a");
  later.made_us = kNow + 60 * kMinute, later.p50_us = later.p90_us = later.made_us;
  const auto kept = ReadPromises(
      StrCat(PromiseLine(Made("a")), PromiseLine(later), OutcomeLine({"sky", "a", kNow + kMinute, 0, kNow})));
  EXPECT_TRUE(kept[0].outcome);
  EXPECT_FALSE(kept[1].outcome);
}

TEST(PromiseCount, IsByClusterAndPartitionWithASum) {
  std::vector<KeptPromise> kept = {Started(5), Started(12), Started(40), {Made("k"), {}}};
  kept[3].promise.partition = "long";
  const auto rows = CountPromises(kept, kNow);
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].partition, "long");
  EXPECT_EQ(rows[0].open, 1);
  EXPECT_EQ(rows[1].promises, 3);
  EXPECT_EQ(rows[1].jobs, 1);
  EXPECT_EQ(rows[1].p50_held, 1);
  EXPECT_EQ(rows[1].p90_held, 2);
  EXPECT_EQ(rows[2].cluster, "all");
  EXPECT_EQ(rows[2].promises, 4);
}

TEST(PromiseCorrection, IsLearnedFromWhatWasForeseenAndNotFromWhatWasTold) {
  std::vector<KeptPromise> kept;
  for (int i = 0; i < 40; ++i) {
    KeptPromise one = Started(20);
    one.promise.job = StrCat("j", i);
    if (i >= 20) one.promise.p50_us = kNow + 20 * kMinute, one.promise.foreseen_p50_us = kNow + 10 * kMinute;
    if (i >= 20) one.promise.foreseen_p90_us = one.promise.p90_us;
    kept.push_back(one);
  }
  const auto learned = CorrectionOf(kept, "sky", "short", kNow + 60 * kMinute);
  EXPECT_EQ(learned.promises, 40);
  EXPECT_NEAR(learned.p50, 1.7, 0.2);
  EXPECT_EQ(CorrectionOf(kept, "sea", "short", kNow).promises, 0);
  for (KeptPromise& one : kept) one.promise.job = "j";
  EXPECT_EQ(CorrectionOf(kept, "sky", "short", kNow).promises, 0) << "one job counts once";
  EXPECT_EQ(ReadPromises(PromiseLine(kept.back().promise)).front().promise, kept.back().promise);
}

TEST(PromiseOutcomes, AStartBeforeThePromiseIsOfAnEarlierRun) {
  JobRecord record;
  record.state = JobState::kQueued, record.started_us = kNow - 10 * kMinute;
  EXPECT_FALSE(OutcomeOf(Made("j"), record, kNow));
  record.started_us = kNow + kMinute;
  EXPECT_EQ(OutcomeOf(Made("j"), record, kNow)->start_us, kNow + kMinute);
  record.started_us = 0, record.state = JobState::kCancelled, record.ended_us = kNow + 3;
  EXPECT_EQ(OutcomeOf(Made("j"), record, kNow)->gone_us, kNow + 3);
}

TEST_F(Promises, TheSamePromiseIsWrittenOnceAndAnotherOneAgain) {
  PromiseFile file(root_);
  ASSERT_TRUE(file.Add(Made("a")));
  ASSERT_TRUE(file.Add(Made("a")));
  ASSERT_TRUE(file.Add(Made("a", 12)));
  EXPECT_EQ(file.Load()->size(), 2U);
}

TEST_F(Promises, ALineThatWasCutOffDoesNotSpoilTheNext) {
  PosixFiles files;
  ASSERT_TRUE(files.MakeFolders(root_));
  ASSERT_TRUE(files.WriteAtomic(root_ + "/promises.jsonl", "{\"promise\":1,\"clu", false));
  ASSERT_TRUE(PromiseFile(root_).Add(Made("a")));
  EXPECT_EQ(PromiseFile(root_).Load()->size(), 1U);
}

TEST_F(Promises, TheFileStaysBounded) {
  PosixFiles files;
  ASSERT_TRUE(files.MakeFolders(root_));
  std::string lines;
  for (int i = 0; lines.size() < (2U << 20) + 100; ++i) lines += PromiseLine(Made(StrCat("old", i)));
  ASSERT_TRUE(files.WriteAtomic(root_ + "/promises.jsonl", lines, false));
  ASSERT_TRUE(PromiseFile(root_).Add(Made("new")));
  const auto kept = *PromiseFile(root_).Load();
  EXPECT_LE(std::filesystem::file_size(root_ + "/promises.jsonl"), (1U << 20) + 1000);
  EXPECT_EQ(kept.back().promise.job, "new");
  EXPECT_GT(kept.size(), 1000U);
}

}  // namespace
}  // namespace overcap
