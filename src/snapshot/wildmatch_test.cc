// SPDX-License-Identifier: Apache-2.0
#include "snapshot/wildmatch.h"

#include <gtest/gtest.h>
#include <string>

namespace overcap {
namespace {

struct Case {
  const char* pattern;
  const char* path;
  bool matches;
};

class WildMatchTable : public testing::TestWithParam<Case> {};

TEST_P(WildMatchTable, SaysWhatGitSays) {
  EXPECT_EQ(WildMatch(GetParam().pattern, GetParam().path), GetParam().matches)
      << GetParam().pattern << " on " << GetParam().path;
}

constexpr Case kCases[] = {
    {"", "", true},
    {"a", "a", true},
    {"a", "b", false},
    {"a", "ab", false},
    {"?", "a", true},
    {"?", "/", false},
    {"*", "", true},
    {"*", "abc", true},
    {"*", "a/b", false},
    {"*.c", "a.c", true},
    {"*.c", "a.c.h", false},
    {"a*b*c", "aXbYbZc", true},
    {"a*b*c", "aXbY", false},
    {"*/b", "a/b", true},
    {"*/b", "a/a/b", false},
    {"**", "a/b/c", true},
    {"**/b", "b", true},
    {"**/b", "a/b", true},
    {"**/b", "a/a/b", true},
    {"**/b", "ab", false},
    {"a/**", "a/b/c", true},
    {"a/**", "a", false},
    {"a/**/b", "a/b", true},
    {"a/**/b", "a/x/y/b", true},
    {"a/**/b", "a/xb", false},
    {"a/**/b/*.c", "a/x/b/y/b/z.c", true},
    {"a**b", "aXb", true},
    {"a**b", "a/b", false},
    {"a/***/b", "a/x/b", true},
    {"[abc]", "b", true},
    {"[!abc]", "b", false},
    {"[^abc]", "d", true},
    {"[a-c]x", "bx", true},
    {"[c-a]", "b", false},
    {"[]]", "]", true},
    {"[!]]", "a", true},
    {"[]-]", "-", true},
    {"[a-]", "-", true},
    {"[\\]]", "]", true},
    {"[a\\-c]", "b", false},
    {"[+--]", ",", true},
    {"[[:digit:]]", "7", true},
    {"[[:alpha:][:digit:]]", "z", true},
    {"[![:space:]]", " ", false},
    {"[[:nope:]]", "n", false},
    {"[[:", "[", false},
    {"[a", "a", false},
    {"[!a]", "/", false},
    {"\\*", "*", true},
    {"\\*", "a", false},
    {"a\\", "a\\", false},
    {"\\a\\b", "ab", true},
};
INSTANTIATE_TEST_SUITE_P(Table, WildMatchTable, testing::ValuesIn(kCases));

TEST(WildMatch, TakesNoLongerForAHostilePattern) {
  std::string pattern;
  for (int i = 0; i < 40; ++i) pattern += "*a";
  EXPECT_FALSE(WildMatch(pattern + "b", std::string(4000, 'a')));
  std::string deep;
  for (int i = 0; i < 40; ++i) deep += "**/a/";
  std::string path;
  for (int i = 0; i < 1000; ++i) path += "a/";
  EXPECT_FALSE(WildMatch(deep + "b", path + "c"));
}

}  // namespace
}  // namespace overcap
