// SPDX-License-Identifier: Apache-2.0
#include "model/node_range.h"

#include <gtest/gtest.h>

namespace overcap {
namespace {

TEST(NodeRange, ANumberAndARange) {
  EXPECT_EQ(ParseNodeRange("4")->least, 4);
  EXPECT_EQ(ParseNodeRange("4")->most, 0);
  EXPECT_EQ(ParseNodeRange("2:8")->least, 2);
  EXPECT_EQ(ParseNodeRange("2:8")->most, 8);
  EXPECT_EQ(ParseNodeRange("2:2")->most, 2);
}

TEST(NodeRange, WhatIsNoneIsSaidInOneLine) {
  for (const char* text :
       {"", "0", "-1", "x", "2:1", "0:3", "x:y", "2:", ":3", "1:2:3", "1-4", "1:9999999"}) {
    const auto range = ParseNodeRange(text);
    ASSERT_FALSE(range) << text;
    EXPECT_EQ(range.error().code, ErrorCode::kUsage);
    EXPECT_NE(range.error().message.find(text), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace overcap
