// SPDX-License-Identifier: Apache-2.0
#include "base/json_scan.h"

#include <gtest/gtest.h>

namespace overcap {
namespace {

using Pieces = std::vector<std::string_view>;

TEST(JsonScan, CutsAnArrayIntoItsElements) {
  EXPECT_EQ(JsonElements(R"([1, "a,]", [2,[3]] ,{"k":[4]},null])"),
            (Pieces{"1", R"("a,]")", "[2,[3]]", R"({"k":[4]})", "null"}));
}

TEST(JsonScan, QuotesInStringsDoNotEndThem) {
  EXPECT_EQ(JsonElements(R"(["a\"b","c\\","d"])"), (Pieces{R"("a\"b")", R"("c\\")", R"("d")"}));
}

TEST(JsonScan, AnEmptyArrayHasNoElements) {
  EXPECT_EQ(JsonElements(" [ ] "), Pieces{});
}

TEST(JsonScan, FindsAnObjectsOwnMember) {
  constexpr std::string_view kObject = R"({"a": {"b": 1}, "b" : [2], "c":"x"})";
  EXPECT_EQ(JsonMember(kObject, "b"), "[2]");
  EXPECT_EQ(JsonMember(kObject, "c"), R"("x")");
  EXPECT_EQ(JsonMember(kObject, "d"), "");
}

TEST(JsonScan, ReadsEscapes) {
  EXPECT_EQ(JsonString(R"("a\n\"\\\/\t\u00fc\ud83d\ude00")"), "a\n\"\\/\t\xC3\xBC\xF0\x9F\x98\x80");
}

TEST(JsonScan, OtherValuesAreNoStrings) {
  for (const char* value : {"", "1", "\"", "null", R"("\x")", R"("\u12")", R"("\)"})
    EXPECT_EQ(JsonString(value), std::nullopt);
}

TEST(JsonScan, TextThatIsCutAnywhereIsRead) {
  constexpr std::string_view kText = R"({"ok":{"rows":[["a\"",1,null,{"x":[]}],["b"]]}})";
  for (size_t length = 0; length < kText.size(); ++length) {
    const std::string cut(kText.substr(0, length));
    for (const std::string_view row : JsonElements(JsonMember(JsonMember(cut, "ok"), "rows")))
      JsonElements(row);
  }
  EXPECT_EQ(JsonElements(JsonMember(JsonMember(kText, "ok"), "rows")).size(), 2u);
}

}  // namespace
}  // namespace overcap
