// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/marked_rows.h"

#include <gtest/gtest.h>

namespace overcap {
namespace {

using Fields = std::vector<std::string_view>;

TEST(MarkedRows, TheFormatAsksForEveryColumnWithItsEnd) {
  EXPECT_EQ(FormatColumns({{"JobID", "State"}, {"Name"}}, "Mark1234"),
            "JobID:\x1f,State:\x1f,Name:\x1fMark1234");
}

TEST(MarkedRows, AFreeFieldMayHoldNewlinesAndSeparators) {
  MarkedRows rows("1\x1fR\x1fx\n2\x1fPD\x1f y\x1fMark1234\n2\x1fPD\x1f\x1fMark1234\n", "Mark1234", 2, 1);
  Fields fields;
  ASSERT_TRUE(*rows.Next(&fields));
  EXPECT_EQ(fields, (Fields{"1", "R", "x\n2\x1fPD\x1f y"}));
  ASSERT_TRUE(*rows.Next(&fields));
  EXPECT_EQ(fields, (Fields{"2", "PD", ""}));
  EXPECT_FALSE(*rows.Next(&fields));
  EXPECT_EQ(rows.rows(), 2u);
}

TEST(MarkedRows, AnAnswerThatIsCutOffAnywhereIsNoticed) {
  const std::string text = "1\x1fR\x1fname\x1fMark1234\n";
  for (size_t length = 1; length < text.size(); ++length) {
    const std::string cut = text.substr(0, length);
    MarkedRows rows(cut, "Mark1234", 2, 1);
    Fields fields;
    const auto more = rows.Next(&fields);
    ASSERT_FALSE(more) << length;
    EXPECT_EQ(more.error().code, ErrorCode::kCorrupt);
  }
}

TEST(MarkedRows, AMarkIsLongAndPlain) {
  EXPECT_TRUE(IsRowMark("m0123456789abcdef"));
  for (const char* mark : {"", "short1", "1bcdefgh", "abcdefg,", "abcd efgh", "abcdefg%"})
    EXPECT_FALSE(IsRowMark(mark));
}

}  // namespace
}  // namespace overcap
