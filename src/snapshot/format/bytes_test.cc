// SPDX-License-Identifier: Apache-2.0
#include "snapshot/format/bytes.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace overcap {
namespace {

using std::string_literals::operator""s;

std::string Varint(uint64_t value) {
  std::string out;
  AppendVarint(&out, value);
  return out;
}

TEST(Bytes, VarintsAreLeb128InTheirShortestForm) {
  EXPECT_EQ(Varint(0), "\0"s);
  EXPECT_EQ(Varint(127), "\x7f"s);
  EXPECT_EQ(Varint(128), "\x80\x01"s);
  EXPECT_EQ(Varint(UINT64_MAX), "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s);
}

TEST(Bytes, LongerFormsAndTooLargeNumbersAreRefused) {
  for (const std::string& bytes : {"\x80\x00"s, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"s, "\x80"s, ""s,
                                   "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"s}) {
    ByteReader reader(bytes);
    EXPECT_EQ(reader.Varint(), 0u);
    EXPECT_FALSE(reader.ok());
    EXPECT_EQ(reader.left(), 0u);
  }
}

TEST(Bytes, ALengthPastTheEndGivesNothing) {
  ByteReader reader(
      "\x05"
      "abc");
  EXPECT_EQ(reader.Bytes(100), "");
  EXPECT_FALSE(reader.ok());
  EXPECT_EQ(reader.Byte(), 0);
  EXPECT_EQ(reader.Id(), Digest());
}

RC_GTEST_PROP(Bytes, WhatIsWrittenIsReadBack,
              (uint64_t number, int64_t signed_number, const std::string& text)) {
  std::string out;
  AppendVarint(&out, number);
  AppendSvarint(&out, signed_number);
  AppendBytes(&out, text);
  AppendDigest(&out, Sha256Of(text));
  ByteReader reader(out);
  RC_ASSERT(reader.Varint() == number);
  RC_ASSERT(reader.Svarint() == signed_number);
  RC_ASSERT(reader.Bytes(text.size()) == text);
  RC_ASSERT(reader.Id() == Sha256Of(text));
  RC_ASSERT(reader.AtEnd());
}

}  // namespace
}  // namespace overcap
