// SPDX-License-Identifier: Apache-2.0
#include "base/crc32c.h"

#include <gtest/gtest.h>
#include <string>

namespace overcap {
namespace {

// From RFC 3720, B.4, and the check value of the Rocksoft model.
TEST(Crc32cTest, MatchesThePublishedVectors) {
  std::string ascending;
  for (char c = 0; c < 32; ++c) ascending.push_back(c);
  for (const auto crc : {Crc32c, Crc32cPortable}) {
    EXPECT_EQ(crc(""), 0u);
    EXPECT_EQ(crc("123456789"), 0xE3069283u);
    EXPECT_EQ(crc(std::string(32, '\0')), 0x8A9136AAu);
    EXPECT_EQ(crc(std::string(32, '\xFF')), 0x62A8AB43u);
    EXPECT_EQ(crc(ascending), 0x46DD794Eu);
    EXPECT_EQ(crc(std::string(ascending.rbegin(), ascending.rend())), 0x113FDB5Cu);
  }
}

TEST(Crc32cTest, BothWaysAgreeOnEveryLengthAndAlignment) {
  std::string data;
  for (int i = 0; i < 200; ++i) data.push_back(static_cast<char>(i * 37));
  for (size_t begin = 0; begin < 9; ++begin) {
    for (size_t length = 0; length < 100; ++length) {
      const std::string_view part = std::string_view(data).substr(begin, length);
      EXPECT_EQ(Crc32c(part), Crc32cPortable(part)) << begin << " " << length;
    }
  }
}

}  // namespace
}  // namespace overcap
