// SPDX-License-Identifier: Apache-2.0
#include "base/plain_lines.h"

#include <gtest/gtest.h>

namespace overcap {
namespace {

TEST(PlainLines, EscapeSequencesAreLeftOut) {
  EXPECT_EQ(PlainLine("\x1B[31mred\x1B[0m and \x1B]0;title\a plain"), "red and  plain");
  EXPECT_EQ(PlainLine("\x1B]52;c;cm0gLXJm\x1B\\x\x1BPq#0\x1B\\y\x1B(0z\x1B"
                      "c!"),
            "xyz!");
  EXPECT_EQ(PlainLine("cut \x1B["), "cut ");
  EXPECT_EQ(PlainLine("cut \x1B"), "cut ");
}

TEST(PlainLines, OtherControlsAreReplacedAndTabsStay) {
  EXPECT_EQ(PlainLine("a\tb\ac\bd"),
            "a\tb\xEF\xBF\xBD"
            "c\xEF\xBF\xBD"
            "d");
  EXPECT_EQ(PlainLine("\xC2\x9B"
                      "2J"),
            "\xEF\xBF\xBD"
            "2J");
  EXPECT_EQ(PlainLine("caf\xC3\xA9 \xFF"), "caf\xC3\xA9 \xEF\xBF\xBD");
}

TEST(PlainLines, OfAProgressBarTheLastStateIsShown) {
  EXPECT_EQ(PlainLine("  0%|   |\r 50%|## |\r100%|###|"), "100%|###|");
  EXPECT_EQ(PlainLine(" 50%|\r100%|\r"), "100%|");
  EXPECT_EQ(PlainText("one\r\ntwo\n 1%\r 2%"), "one\ntwo\n 2%");
}

TEST(PlainLines, PiecesGiveTheSameAsTheWhole) {
  const std::string text = "a\x1B[1mb\nc 1%\rc 2%\n\x1B]0;t\ad";
  std::string pieces;
  PlainLines lines;
  for (const char c : text) pieces += lines.Take(std::string(1, c));
  EXPECT_EQ(pieces + lines.Finish(), PlainText(text));
  EXPECT_EQ(PlainText(text), "ab\nc 2%\nd");
}

}  // namespace
}  // namespace overcap
