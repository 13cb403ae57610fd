// SPDX-License-Identifier: Apache-2.0
#include "agent/start_as.h"

#include <gtest/gtest.h>

namespace overcap {
namespace {

TEST(StartAs, ReadsWhoAndWhat) {
  const auto start = ParseStartAs({"--uid", "1001", "--gid", "1002", "--groups", "4,27", "--limits",
                                   "nofile=1:2", "--area", "/a", "--claim", "/c", "--", "--job", "/j"});
  ASSERT_TRUE(start) << start.error().message;
  EXPECT_EQ(*start, (StartAs{1001, 1002, {4, 27}, {{"nofile", 1, 2}}, "/c", "/a", {"--job", "/j"}}));
}

TEST(StartAs, OnlyWhatHasNoClaimAndStartsNoRanksIsAHelper) {
  EXPECT_TRUE(IsHelper({1, 1, {}, {}, "", "/a", {"empty", "/a/trash"}}));
  EXPECT_TRUE(IsHelper({1, 1, {}, {}, "", "/a", {"spare", "--store", "/s"}}));
  EXPECT_FALSE(IsHelper({1, 1, {}, {}, "", "/a", {"--job", "/j"}}));
  EXPECT_FALSE(IsHelper({1, 1, {}, {}, "", "/a", {}}));
  EXPECT_FALSE(IsHelper({1, 1, {}, {}, "/c", "/a", {"empty", "/a/trash"}}));
}

TEST(StartAs, WithoutAUserThereIsNone) {
  const std::vector<std::vector<std::string>> wrong = {
      {},
      {"--area", "/a", "--"},
      {"--uid", "1", "--"},
      {"--uid", "1", "--area", "/a"},
      {"--uid", "-1", "--area", "/a", "--"},
      {"--uid", "4294967295", "--area", "/a", "--"},
      {"--uid", "root", "--area", "/a", "--"},
      {"--uid", "1", "--groups", "1,,2", "--area", "/a", "--"},
      {"--uid", "1", "--area", "a", "--"},
      {"--uid", "1", "--area", "/a", "--limits", "x", "--"},
      {"--uid", "1", "--area", "/a", "--other", "x", "--"},
  };
  for (const auto& words : wrong) EXPECT_EQ(ParseStartAs(words).error().code, ErrorCode::kUsage);
}

}  // namespace
}  // namespace overcap
