// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <gtest/gtest.h>

namespace overcap {
namespace {

TEST(TextTest, SplitKeepsEmptyParts) {
  EXPECT_EQ(Split("a,,b", ','), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(Split("", ','), (std::vector<std::string>{""}));
  EXPECT_EQ(Join({"", "a", ""}, ","), ",a,");
}

TEST(TextTest, ParseIntTakesWholeNumbersOnly) {
  EXPECT_EQ(ParseInt("-17"), -17);
  for (const char* bad : {"", "1x", " 1", "1.0", "99999999999999999999", "0x1"})
    EXPECT_FALSE(ParseInt(bad)) << bad;
}

TEST(TextTest, ShellQuoteLeavesPlainWordsAndQuotesTheRest) {
  EXPECT_EQ(ShellQuote("train.py"), "train.py");
  EXPECT_EQ(ShellQuote(""), "''");
  EXPECT_EQ(ShellQuote("a b"), "'a b'");
  EXPECT_EQ(ShellQuote("it's"), "'it'\\''s'");
  EXPECT_EQ(ShellQuote("a\nb'\\"), "$'a\\nb\\'\\\\'");
  EXPECT_EQ(ShellJoin({"echo", "&&", "$HOME"}), "echo '&&' '$HOME'");
}

TEST(TextTest, ToUtf8ReplacesWhatATerminalMustNotSee) {
  EXPECT_EQ(ToUtf8("gr\xC3\xBC\xC3\x9F"), "gr\xC3\xBC\xC3\x9F");
  EXPECT_EQ(ToUtf8("a\x1B[31m"), "a\xEF\xBF\xBD[31m");
  EXPECT_EQ(ToUtf8("\xff\xC3"), "\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(ToUtf8("\xED\xA0\x80").substr(0, 3), "\xEF\xBF\xBD") << "a surrogate is no character";
  EXPECT_EQ(Utf8Length("\xC0\x80"), 0u) << "overlong";
  EXPECT_EQ(Utf8Length("\xF4\x90\x80\x80"), 0u) << "beyond unicode";
}

TEST(TextTest, NearestFindsWhatTiredFingersMeant) {
  const std::vector<std::string> verbs = {"submit", "query", "abort", "gpus", "resubmit"};
  EXPECT_EQ(Nearest("sumbit", verbs), "submit");
  EXPECT_EQ(Nearest("gpsu", verbs), "gpus");
  EXPECT_EQ(Nearest("abrt", verbs), "abort");
  EXPECT_EQ(Nearest("frobnicate", verbs), "");
}

TEST(SplitWords, TakesBlanksQuotesAndBackslashesAsAShellDoes) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(SplitWords(""), Words());
  EXPECT_EQ(SplitWords("  --mem=0   --exclusive "), (Words{"--mem=0", "--exclusive"}));
  EXPECT_EQ(SplitWords("--x 'a b' \"c d\"e '' $HOME"), (Words{"--x", "a b", "c de", "", "$HOME"}));
  EXPECT_EQ(SplitWords("a\\ b 'c\\d' \"e\\\"f\""), (Words{"a b", "c\\d", "e\"f"}));
  EXPECT_EQ(SplitWords("'open"), std::nullopt);
}

TEST(TextTest, AQuotedTextIsShortAndOnOneLine) {
  EXPECT_EQ(Quoted("node 1"), "'node 1'");
  EXPECT_EQ(Quoted("a\nb\r\tc"), "'a b\xEF\xBF\xBD c'");
  EXPECT_EQ(Quoted("abcdef", 4), "'abcd...'");
  EXPECT_EQ(Quoted("abcd", 4), "'abcd'");
}

}  // namespace
}  // namespace overcap
