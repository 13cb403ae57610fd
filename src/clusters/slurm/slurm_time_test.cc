// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/slurm_time.h"

#include <cstdlib>
#include <ctime>
#include <gtest/gtest.h>

namespace overcap {
namespace {

TEST(SlurmTime, SpansAreReadInEveryFormThatSlurmWrites) {
  EXPECT_EQ(ParseSlurmDuration("30"), 1800);
  EXPECT_EQ(ParseSlurmDuration("30:00"), 1800);
  EXPECT_EQ(ParseSlurmDuration("0:07"), 7);
  EXPECT_EQ(ParseSlurmDuration("1:00:00"), 3600);
  EXPECT_EQ(ParseSlurmDuration("2-00:00:00"), 172800);
  EXPECT_EQ(ParseSlurmDuration("1-02:03:04"), 93784);
  EXPECT_EQ(ParseSlurmDuration("3-0"), 259200);
  EXPECT_EQ(ParseSlurmDuration("1-12:30"), 131400);
  EXPECT_EQ(ParseSlurmDuration("UNLIMITED"), kSlurmUnlimited);
}

TEST(SlurmTime, WordsThatTellNoTimeAreNoSpan) {
  for (const char* text : {"INVALID", "N/A", "Partition_Limit", "NOT_SET", "", ":", "1:", "-1", "1-",
                           "1:2:3:4", "1-2:3:4:5", "99999999999999999999", "1 0", "+3"}) {
    EXPECT_EQ(ParseSlurmDuration(text), std::nullopt) << text;
  }
}

TEST(SlurmTime, ASpanIsWrittenSoThatItIsReadBack) {
  EXPECT_EQ(FormatSlurmDuration(59), "00:00:59");
  EXPECT_EQ(FormatSlurmDuration(93784), "1-02:03:04");
  for (int64_t seconds : {1, 60, 3599, 3600, 86399, 86400, 7 * 86400, 1'000'000'007}) {
    EXPECT_EQ(ParseSlurmDuration(FormatSlurmDuration(seconds)), seconds);
  }
}

TEST(SlurmTime, PointsInTimeAreSecondsOrTheLocalClock) {
  setenv("TZ", "Europe/Berlin", 1);
  tzset();
  EXPECT_EQ(ParseSlurmTime("1794734712"), 1'794'734'712'000'000);
  EXPECT_EQ(ParseSlurmTime("2026-11-15T10:25:12"), 1'794'734'712'000'000);
  EXPECT_EQ(FormatSlurmTime(1'794'734'712'000'000), "2026-11-15T10:25:12");
  setenv("TZ", "UTC", 1);
  tzset();
  EXPECT_EQ(ParseSlurmTime("2026-11-15T09:25:12"), 1'794'734'712'000'000);
}

TEST(SlurmTime, WhatIsNoPointInTimeIsNone) {
  for (const char* text :
       {"Unknown", "N/A", "None", "NONE", "(null)", "", "0", "-5", "2026-11-15", "2026-13-15T09:25:12",
        "2026-11-00T09:25:12", "2026-11-15T24:25:12", "99999999999999999", "2026-11-15T09:25:1x"}) {
    EXPECT_EQ(ParseSlurmTime(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace overcap
