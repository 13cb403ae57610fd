// SPDX-License-Identifier: Apache-2.0
#include "agent/elastic/lost_head.h"

#include <gtest/gtest.h>

namespace overcap {
namespace {

constexpr std::string_view kEpoch = "{\"time_us\":1,\"event\":\"epoch\",\"epoch\":1,\"why\":\"\"}\n";

TEST(LostHead, IsSeenByWhatTheAgentOfAnotherNodeSaidLast) {
  const std::string lost =
      std::string(kEpoch) +
      "{\"time_us\":2,\"event\":\"ended\",\"status\":5,\"message\":\"no leader of job 'x' was found\"}\n";
  EXPECT_TRUE(EndedWithoutLeader(lost));
  EXPECT_FALSE(EndedWithoutLeader(kEpoch));
  EXPECT_FALSE(EndedWithoutLeader(""));
  EXPECT_FALSE(EndedWithoutLeader(
      "{\"time_us\":2,\"event\":\"ended\",\"status\":5,\"message\":\"only 1 of at least 2 nodes\"}\n"));
}

TEST(LostHead, WhatIsSaidInItsPlaceFollowsItsLastLine) {
  using namespace std::string_literals;
  EXPECT_EQ(EndOfReport("ab\n\0\0\0"s).offset, 3u);
  EXPECT_FALSE(EndOfReport("ab\n\0\0\0"s).torn);
  EXPECT_EQ(EndOfReport("ab\ncd"s).offset, 5u);
  EXPECT_TRUE(EndOfReport("ab\ncd\0"s).torn);
  EXPECT_EQ(EndOfReport("").offset, 0u);
  EXPECT_FALSE(EndOfReport("").torn);
}

}  // namespace
}  // namespace overcap
