// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/history_text.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace overcap {
namespace {

constexpr std::string_view kMark = "mabcdefgh";

std::string Row(const std::vector<std::string>& fields) {
  std::string row;
  for (const std::string& field : fields) row += StrCat(field, '\x1f', kMark);
  return row + "\n";
}

TEST(SlurmHistory, RunsThatAreOverTellTheirTimes) {
  const auto runs =
      ParseHistory(Row({"ann", "vision", "short", "60", "1800", "1794730000", "1794731800"}) +
                       Row({"bob", "nlp", "long,overcap", "UNLIMITED", "7", "1794730000", "1794730007"}),
                   kMark);
  ASSERT_TRUE(runs) << runs.error().message;
  ASSERT_EQ(runs->size(), 2U);
  EXPECT_EQ((*runs)[0].user, "ann");
  EXPECT_EQ((*runs)[0].limit_s, 3600);
  EXPECT_EQ((*runs)[0].run_s, 1800);
  EXPECT_EQ((*runs)[1].partition, "long");
  EXPECT_EQ((*runs)[1].limit_s, 0);
}

TEST(SlurmHistory, AJobThatTheAccountsKnowHalfIsLeftOut) {
  const auto runs = ParseHistory(Row({"ann", "vision", "", "", "1", "1794730000", "1794730001"}), kMark);
  ASSERT_TRUE(runs) << runs.error().message;
  EXPECT_TRUE(runs->empty());
}

TEST(SlurmHistory, WhatNeverRanIsNotCounted) {
  const auto runs = ParseHistory(Row({"ann", "vision", "short", "60", "0", "Unknown", "1794731800"}), kMark);
  ASSERT_TRUE(runs);
  EXPECT_TRUE(runs->empty());
}

TEST(SlurmHistory, AnAnswerThatWasCutOffIsRefused) {
  EXPECT_FALSE(ParseHistory("ann", kMark));
}

TEST(SlurmHistory, AClusterThatWritesNothingDownHasNoHistory) {
  EXPECT_TRUE(SaysThereIsNoHistory("Slurm accounting storage is disabled\n"));
  EXPECT_FALSE(SaysThereIsNoHistory("sacct: error: Problem talking to the database: Connection refused\n"));
}

}  // namespace
}  // namespace overcap
