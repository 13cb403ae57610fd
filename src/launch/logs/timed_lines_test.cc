// SPDX-License-Identifier: Apache-2.0
#include "launch/logs/timed_lines.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace overcap {
namespace {

std::string Story(const std::vector<TimedLine>& lines) {
  std::string text;
  for (const TimedLine& line : lines) {
    text += StrCat(line.rank, "/", line.stream, "@", line.time_us, " ", line.text, "; ");
  }
  return text;
}

TEST(TimedLines, ALineHasTheTimeOfItsFirstByte) {
  EXPECT_EQ(Story(LinesOf(3, "one\ntwo\nbad\nrest", "0 1 100\n5 1 200\n8 2 300\n")),
            "3/1@100 one; 3/1@100 two; 3/2@300 bad; 3/2@300 rest; ");
}

TEST(TimedLines, WithoutTimesLinesAreStillThere) {
  EXPECT_EQ(Story(LinesOf(0, "a\n\nb\n", "")), "0/1@0 a; 0/1@0 ; 0/1@0 b; ");
  EXPECT_EQ(Story(LinesOf(0, "", "0 1 100\n")), "");
}

TEST(TimedLines, LinesOfTimesThatMakeNoSenseAreLeftOut) {
  EXPECT_EQ(Story(LinesOf(0, "a\nb\nc\n", "0 1 100\nnonsense\n-2 1 5\n2 7 5\n2 1 200\n0 1 300\n4 1 4")),
            "0/1@100 a; 0/1@200 b; 0/1@200 c; ");
}

TEST(TimedLines, RanksAreMergedByTimeAndEachKeepsItsOrder) {
  const auto zero = LinesOf(0, "a\nb\nc\n", "0 1 100\n2 1 300\n4 1 250\n");
  const auto one = LinesOf(1, "x\ny\n", "0 1 200\n");
  EXPECT_EQ(Story(InOrderOfTime({zero, one})), "0/1@100 a; 1/1@200 x; 1/1@200 y; 0/1@300 b; 0/1@250 c; ");
}

}  // namespace
}  // namespace overcap
