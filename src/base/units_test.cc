// SPDX-License-Identifier: Apache-2.0
#include "base/units.h"

#include <gtest/gtest.h>

namespace overcap {
namespace {

TEST(UnitsTest, DurationsAreReadAsPeopleAndSchedulersWriteThem) {
  EXPECT_EQ(*ParseDurationSeconds("90"), 90);
  EXPECT_EQ(*ParseDurationSeconds("1h30m"), 5400);
  EXPECT_EQ(*ParseDurationSeconds("2d"), 172800);
  EXPECT_EQ(*ParseDurationSeconds("01:30:00"), 5400);
  EXPECT_EQ(*ParseDurationSeconds("1-12:00:00"), 129600);
  for (const char* bad : {"", "0", "1h30", "-5", "5x", "h", "1:2:3:4", "99999999999d", "1 h"}) {
    EXPECT_FALSE(ParseDurationSeconds(bad)) << bad;
  }
}

TEST(UnitsTest, DurationsAreShownByTheirTwoLargestParts) {
  EXPECT_EQ(FormatDuration(0), "0s");
  EXPECT_EQ(FormatDuration(59), "59s");
  EXPECT_EQ(FormatDuration(90), "1m30s");
  EXPECT_EQ(FormatDuration(7200), "2h");
  EXPECT_EQ(FormatDuration(2 * 86400 + 3 * 3600 + 5), "2d3h");
}

TEST(UnitsTest, ShortTimesAreShownWithTenths) {
  EXPECT_EQ(FormatElapsed(-5), "0.0s");
  EXPECT_EQ(FormatElapsed(340'000), "0.3s");
  EXPECT_EQ(FormatElapsed(9'999'999), "9.9s");
  EXPECT_EQ(FormatElapsed(10'000'000), "10s");
  EXPECT_EQ(FormatElapsed(90'500'000), "1m30s");
}

TEST(UnitsTest, SizesArePowersOf1024) {
  EXPECT_EQ(*ParseBytes("512M"), 512LL << 20);
  EXPECT_EQ(*ParseBytes("1.5G"), 3LL << 29);
  EXPECT_EQ(*ParseBytes("16GiB"), 16LL << 30);
  EXPECT_EQ(*ParseBytes("10B"), 10);
  EXPECT_EQ(*ParseBytes("4k"), 4096);
  for (const char* bad : {"", "0", "1", "512", "0B", "G", "-1G", "1X", "1GG", "1.2.3G", "99999999P"})
    EXPECT_FALSE(ParseBytes(bad)) << bad;
  EXPECT_EQ(ParseBytes("16").error().hint, "write 16G, 16M or, for bytes, 16B");
  EXPECT_EQ(FormatBytes(3LL << 29), "1.5 GiB");
  EXPECT_EQ(FormatBytes(12), "12 B");
}

TEST(UnitsTest, TimesAreReadBackAsTheyWereWritten) {
  const int64_t time = 1'700'000'000'000'042;
  EXPECT_EQ(FormatTimeUtc(time), "2023-11-14T22:13:20.000042Z");
  EXPECT_EQ(ParseTimeUtc(FormatTimeUtc(time)), time);
}

}  // namespace
}  // namespace overcap
