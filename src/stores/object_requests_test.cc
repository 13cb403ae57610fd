// SPDX-License-Identifier: Apache-2.0
#include "stores/object_requests.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "stores/store.h"

namespace overcap {
namespace {

TEST(ObjectRequests, NameRanges) {
  EXPECT_EQ(ByteRange(0, 10), "bytes=0-9");
  EXPECT_EQ(ByteRange(5, 0), "bytes=5-5");
  EXPECT_EQ(ByteRange(0, Store::kAll), "bytes=0-9223372036854775806");
  EXPECT_EQ(ByteRange(5, Store::kAll), "bytes=5-");
}

TEST(ObjectRequests, KnowTextFromOtherBytes) {
  EXPECT_TRUE(IsUtf8("\xc3\xa9"));
  EXPECT_FALSE(IsUtf8("\xc3"));
  EXPECT_EQ(WithoutQuotes("\"abc\""), "abc");
  EXPECT_EQ(WithoutQuotes("\""), "\"");
  EXPECT_EQ(PlainWord("eu-west-1"), "eu-west-1");
  EXPECT_EQ(PlainWord("a\nb"), "");
  EXPECT_NE(NewPutMark(), NewPutMark());
}

RC_GTEST_PROP(ObjectRequests, SlicesAreThoseOfTheWhole, (const std::vector<std::string>& texts)) {
  const std::vector<std::string_view> pieces(texts.begin(), texts.end());
  std::string whole;
  for (const std::string& text : texts) whole += text;
  RC_ASSERT(SizeOfPieces(pieces) == static_cast<int64_t>(whole.size()));
  const auto offset = *rc::gen::inRange<size_t>(0, whole.size() + 1);
  const auto size = *rc::gen::inRange<size_t>(0, whole.size() + 1);
  std::string slice;
  for (const std::string_view piece :
       SliceOfPieces(pieces, static_cast<int64_t>(offset), static_cast<int64_t>(size)))
    slice += piece;
  RC_ASSERT(slice == whole.substr(offset, size));
}

}  // namespace
}  // namespace overcap
