// SPDX-License-Identifier: Apache-2.0
#include "cli/progress_meter.h"

#include <gtest/gtest.h>

#include "cli/terminal.h"

namespace overcap::cli {
namespace {

constexpr int64_t kSecond = 1'000'000, kMiB = 1 << 20;

TEST(ProgressMeter, TheRateIsThatOfTheLastSeconds) {
  ProgressRate rate;
  rate.Note(0, 0);
  EXPECT_EQ(rate.BytesPerSecond(), 0);
  EXPECT_EQ(rate.SecondsLeft(1), -1);
  for (int64_t s = 1; s <= 10; ++s) rate.Note(s * kSecond, s * 100);
  for (int64_t s = 11; s <= 20; ++s) rate.Note(s * kSecond, 1000 + (s - 10) * 1000);
  EXPECT_EQ(rate.BytesPerSecond(), 1000);
  EXPECT_EQ(rate.SecondsLeft(2500), 3);
  EXPECT_EQ(rate.SecondsLeft(-5), 0);
}

TEST(ProgressMeter, AHandfulOfMillisecondsIsNoRate) {
  ProgressRate rate;
  rate.Note(0, 0);
  rate.Note(1000, 1'000'000);
  EXPECT_EQ(rate.BytesPerSecond(), 0);
}

TEST(ProgressMeter, WorkThatBeginsAgainIsMeasuredAgain) {
  ProgressRate rate;
  rate.Note(0, 0);
  rate.Note(kSecond, 5000);
  rate.Note(2 * kSecond, 0);
  EXPECT_EQ(rate.BytesPerSecond(), 0);
  rate.Note(3 * kSecond, 10);
  EXPECT_EQ(rate.BytesPerSecond(), 10);
}

TEST(ProgressMeter, ALineHasBarRateAndTimeLeft) {
  const ProgressFacts facts{"save", "saving", 1, 4, 512 * kMiB, 1024 * kMiB};
  EXPECT_EQ(ProgressLine(facts, 256.0 * kMiB, 2, 80),
            "saving  [==========>          ]  50%  512.0 MiB of 1.0 GiB  256.0 MiB/s  2s left");
  EXPECT_EQ(ProgressLine(facts, 0, -1, 40), "saving  50%  512.0 MiB of 1.0 GiB");
}

TEST(ProgressMeter, NoLineIsWiderThanTheTerminalThatCanHoldItsWords) {
  for (int64_t done = 0; done <= 2000; done += 37) {
    for (int width = 70; width < 200; width += 9) {
      const ProgressFacts facts{"save", "saving", done, 2000, done * kMiB, 2000 * kMiB};
      EXPECT_LE(DisplayWidth(ProgressLine(facts, 1e8, 100, width)), width);
    }
  }
}

TEST(ProgressMeter, UnknownTotalsGiveNoBar) {
  EXPECT_EQ(ProgressLine({"scan", "looking", 12345, 0, 0, 0}, 0, -1, 80), "looking  12345");
  EXPECT_EQ(ProgressLine({"scan", "looking", 3, 9, 0, 0}, 0, -1, 80), "looking  3 of 9");
  EXPECT_EQ(ProgressLine({"scan", "looking", 0, 0, 0, 0}, 0, -1, 80), "looking");
  EXPECT_EQ(ProgressLine({"copy", "copying", 658, 0, 3 * kMiB, 0}, kMiB, -1, 80),
            "copying  658 files  3.0 MiB  1.0 MiB/s");
  EXPECT_EQ(ProgressLine({"copy", "copying", 1, 0, 3 * kMiB, 0}, 0, -1, 80), "copying  1 file  3.0 MiB");
  EXPECT_EQ(ProgressLine({"read", "reading", 0, 0, 3 * kMiB, 0}, kMiB, -1, 80),
            "reading  3.0 MiB  1.0 MiB/s");
}

TEST(ProgressMeter, WithJsonItPrintsEventsAndNotTooMany) {
  std::FILE* file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  Output out(file, stderr, {});
  out.SetModes(true, false, false);
  FakeClock clock;
  ProgressMeter meter(out, clock);
  for (int i = 0; i < 100; ++i) {
    meter.Show({"save", "saving", i, 100, i * 1000, 100'000});
    clock.Advance(10'000);
  }
  std::rewind(file);
  char line[512];
  int lines = 0;
  while (std::fgets(line, sizeof line, file) != nullptr) {
    EXPECT_EQ(std::string_view(line).substr(0, 38), "{\"event\":\"progress\",\"what\":\"save\",\"fil");
    ++lines;
  }
  EXPECT_EQ(lines, 10);
  std::fclose(file);
}

}  // namespace
}  // namespace overcap::cli
