// SPDX-License-Identifier: Apache-2.0
#include "net/http/http_date.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace overcap {
namespace {

constexpr int64_t k1994 = 784'111'777'000'000;

TEST(HttpDate, IsWrittenInThreeWays) {
  EXPECT_EQ(HttpDate(k1994), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(BasicIsoTime(k1994), "19941106T084937Z");
  EXPECT_EQ(ExtendedIsoTime(k1994), "1994-11-06T08:49:37Z");
}

TEST(HttpDate, IsReadWithFractions) {
  EXPECT_EQ(ParseIsoTime("1994-11-06T08:49:37.5Z"), k1994 + 500'000);
  EXPECT_EQ(ParseIsoTime("1994-11-06T08:49:37.123456Z"), k1994 + 123'456);
  EXPECT_EQ(ParseIsoTime("1994-11-06T08:49:37.1234567Z"), k1994 + 123'456);
}

TEST(HttpDate, IsRefusedWhenOdd) {
  for (const char* text :
       {"", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun, 06 Nox 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 25:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 UTC", "Sun, x6 Nov 1994 08:49:37 GMT"})
    EXPECT_FALSE(ParseHttpDate(text)) << text;
  for (const char* text : {"", "1994-11-06", "1994-11-06T08:49:37", "1994-13-06T08:49:37Z",
                           "1994-11-06T08:49:37.Z", "1994-11-06T08:49:37xZ", "1994-11-06T08:49:37.xZ"})
    EXPECT_FALSE(ParseIsoTime(text)) << text;
}

RC_GTEST_PROP(HttpDate, ComesBack, ()) {
  const int64_t us = *rc::gen::inRange<int64_t>(0, 4'000'000'000) * 1'000'000;
  RC_ASSERT(ParseHttpDate(HttpDate(us)) == us);
  RC_ASSERT(ParseIsoTime(ExtendedIsoTime(us)) == us);
}

}  // namespace
}  // namespace overcap
