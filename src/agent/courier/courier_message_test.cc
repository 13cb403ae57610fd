// SPDX-License-Identifier: Apache-2.0
#include "agent/courier/courier_message.h"

#include <gtest/gtest.h>

namespace overcap {
namespace {

TEST(CourierMessage, OrdersAreRead) {
  const auto track = ParseCourierOrder(R"({"do":"track","names":["attempt-1/rank-0.log"]})");
  ASSERT_TRUE(track);
  EXPECT_EQ(track->kind, CourierOrder::Kind::kTrack);
  EXPECT_EQ(track->names, std::vector<std::string>{"attempt-1/rank-0.log"});
  EXPECT_TRUE(ParseCourierOrder(R"({"do":"track","names":["attempt-1/node-0/"]})"));
  const auto code = ParseCourierOrder(R"({"do":"code","tree":"abc","to":"/x/code"})");
  ASSERT_TRUE(code);
  EXPECT_EQ(code->name, "abc");
  EXPECT_EQ(code->to, "/x/code");
}

TEST(CourierMessage, WhatIsNoOrderIsRefused) {
  for (const char* text :
       {"", "{}", "[]", R"({"do":"fly"})", R"({"do":"track","names":["../x"]})",
        R"({"do":"track","names":["/etc/passwd"]})", R"({"do":"track","names":["a//"]})",
        R"({"do":"track","names":["/"]})", R"({"do":"create","name":"a/../../b"})",
        R"({"do":"code","tree":"abc","to":"code"})", R"({"do":"code","to":"/x"})",
        R"({"do":"drain","seconds":-1})", R"({"do":"drain","seconds":1e18})", R"({"do":1})"})
    EXPECT_FALSE(ParseCourierOrder(text)) << text;
}

TEST(CourierMessage, ErrorsComeBackAsTheyWere) {
  const Error error{ErrorCode::kDenied, "no key for 's3://x'", ""};
  const auto back = ErrorIn(ErrorMessage(error));
  ASSERT_FALSE(back);
  EXPECT_EQ(back.error().code, ErrorCode::kDenied);
  EXPECT_EQ(back.error().message, error.message);
  EXPECT_TRUE(ErrorIn("{}"));
}

}  // namespace
}  // namespace overcap
