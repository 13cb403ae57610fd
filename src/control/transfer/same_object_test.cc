// SPDX-License-Identifier: Apache-2.0
#include "control/transfer/same_object.h"

#include <gtest/gtest.h>

namespace overcap {
namespace {

constexpr int64_t kSecond = 1'000'000;

StoredObjectInfo Object(int64_t size, int64_t modified_us, std::string md5 = "") {
  return {"k", size, modified_us, "", std::move(md5)};
}

TEST(JudgeCopy, WhatIsNotThereIsNew) {
  EXPECT_EQ(JudgeCopy(Object(1, 1), nullptr, {}), CopyVerdict::kNew);
  EXPECT_EQ(JudgeCopy(Object(1, 1), nullptr, {.all = true}), CopyVerdict::kNew);
}

TEST(JudgeCopy, AnotherSizeIsAnotherContent) {
  const StoredObjectInfo there = Object(2, 5 * kSecond, "a");
  for (const bool keeps : {false, true})
    for (const bool checksum : {false, true})
      EXPECT_EQ(JudgeCopy(Object(1, 1, "a"), &there, {keeps, checksum}), CopyVerdict::kSize);
}

TEST(JudgeCopy, WhereBothTellAnMd5ItDecides) {
  const StoredObjectInfo there = Object(1, 5 * kSecond, "a");
  EXPECT_EQ(JudgeCopy(Object(1, 9 * kSecond, "a"), &there, {}), CopyVerdict::kSame);
  EXPECT_EQ(JudgeCopy(Object(1, 1 * kSecond, "b"), &there, {}), CopyVerdict::kContent);
}

TEST(JudgeCopy, WhereTimesAreKeptTheyAreTheSameToTheSecond) {
  const StoredObjectInfo there = Object(1, 5 * kSecond);
  const SameRules keeps{.keeps_times = true};
  EXPECT_EQ(JudgeCopy(Object(1, 5 * kSecond + 999'999), &there, keeps), CopyVerdict::kSame);
  EXPECT_EQ(JudgeCopy(Object(1, 4 * kSecond), &there, keeps), CopyVerdict::kTime);
  EXPECT_EQ(JudgeCopy(Object(1, 6 * kSecond), &there, keeps), CopyVerdict::kTime);
  const StoredObjectInfo early = Object(1, -5 * kSecond);
  EXPECT_EQ(JudgeCopy(Object(1, -5 * kSecond + 1), &early, keeps), CopyVerdict::kSame);
  EXPECT_EQ(JudgeCopy(Object(1, -5 * kSecond - 1), &early, keeps), CopyVerdict::kTime);
}

TEST(JudgeCopy, ElsewhereACopyMustBeYoungerThanItsSource) {
  const StoredObjectInfo there = Object(1, 5 * kSecond);
  EXPECT_EQ(JudgeCopy(Object(1, 4 * kSecond), &there, {}), CopyVerdict::kSame);
  EXPECT_EQ(JudgeCopy(Object(1, 5 * kSecond), &there, {}), CopyVerdict::kSame);
  EXPECT_EQ(JudgeCopy(Object(1, 5 * kSecond + 999'999), &there, {}), CopyVerdict::kSame);
  EXPECT_EQ(JudgeCopy(Object(1, 6 * kSecond), &there, {}), CopyVerdict::kTime);
}

// tar, rsync -t and git put old times on new contents.
TEST(JudgeCopy, AnOlderFileThatCameAfterTheCopyIsCompared) {
  StoredObjectInfo from = Object(1, 4 * kSecond);
  const StoredObjectInfo there = Object(1, 5 * kSecond);
  from.changed_us = 5 * kSecond + 1;
  EXPECT_EQ(JudgeCopy(from, &there, {}), CopyVerdict::kSame);
  from.changed_us = 6 * kSecond;
  EXPECT_EQ(JudgeCopy(from, &there, {}), CopyVerdict::kSum);
  from.modified_us = there.modified_us;  // what was downloaded has the time of what it is a copy of
  EXPECT_EQ(JudgeCopy(from, &there, {}), CopyVerdict::kSame);
}

TEST(JudgeCopy, OthersAskForMore) {
  const StoredObjectInfo there = Object(1, 5 * kSecond, "a");
  EXPECT_EQ(JudgeCopy(there, &there, {.checksum = true}), CopyVerdict::kRead);
  EXPECT_EQ(JudgeCopy(there, &there, {.all = true}), CopyVerdict::kAsked);
}

}  // namespace
}  // namespace overcap
