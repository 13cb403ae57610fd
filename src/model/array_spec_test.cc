// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "model/job_spec.h"

namespace overcap {
namespace {

TEST(ArraySpecTest, RangesStepsAndLimitAreRead) {
  const auto array = ParseArraySpec("1,3,5-10:2%4");
  ASSERT_TRUE(array);
  EXPECT_EQ(array->ranges, (std::vector<ArraySpec::Range>{{1, 1, 1}, {3, 3, 1}, {5, 9, 2}}));
  EXPECT_EQ(array->limit, 4);
  EXPECT_EQ(array->Count(), 5);
  EXPECT_EQ(FormatArraySpec(*array), "1,3,5-9:2%4");
}

TEST(ArraySpecTest, IndicesAreInAscendingOrderHoweverTheyWereWritten) {
  EXPECT_EQ(FormatArraySpec(*ParseArraySpec("7,0-2")), "0-2,7");
}

TEST(ArraySpecTest, WhatIsNoArrayIsRefused) {
  for (const char* text : {"",           "a",
                           "-1",         "1-",
                           "-",          "5-1",
                           "1:2",        "1-5:0",
                           "1-5:",       "1-5%0",
                           "1-5%",       "%5",
                           "1,,2",       "1,",
                           " 1",         "1 - 2",
                           "0-5,3",      "0-10:2,1-9:2",
                           "0-1000000",  "99999999999999999999",
                           "2000000000", "1-5%99999999999",
                           "1-2-3",      "+1"}) {
    const auto array = ParseArraySpec(text);
    ASSERT_FALSE(array) << text;
    EXPECT_EQ(array.error().code, ErrorCode::kUsage);
  }
}

TEST(ArraySpecTest, TheLargestArrayIsAccepted) {
  EXPECT_EQ(ParseArraySpec("0-999999")->Count(), kMaxArrayTasks);
}

RC_GTEST_PROP(ArraySpecTest, TextAndPositionsComeBack, ()) {
  ArraySpec array;
  int next = 0;
  const int ranges = *rc::gen::inRange(1, 6);
  for (int i = 0; i < ranges; ++i) {
    const int first = next + *rc::gen::inRange(0, 5);
    const int more = *rc::gen::inRange(0, 20);
    const int step = more == 0 ? 1 : *rc::gen::inRange(1, 9);
    array.ranges.push_back({first, first + more * step, step});
    next = first + more * step + 1;
  }
  array.limit = *rc::gen::inRange(0, 3);
  const auto read = ParseArraySpec(FormatArraySpec(array));
  RC_ASSERT(read.has_value());
  RC_ASSERT(*read == array);
  int found = 0;
  for (int index = -1; index <= next; ++index) {
    const int position = array.PositionOf(index);
    if (position < 0) continue;
    RC_ASSERT(position == found++);
    RC_ASSERT(array.IndexAt(position) == index);
  }
  RC_ASSERT(found == array.Count());
}

}  // namespace
}  // namespace overcap
