// SPDX-License-Identifier: Apache-2.0
#include "snapshot/sha256.h"

#include <gtest/gtest.h>

namespace overcap {
namespace {

constexpr char kAbc[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

TEST(Sha256, GivesTheStandardsVectors) {
  EXPECT_EQ(Sha256Of("").Hex(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256Of("abc").Hex(), kAbc);
}

TEST(Sha256, DoesNotCareHowTheBytesAreCut) {
  Sha256 hash;
  hash.Update("a", 1);
  hash.Update("", 0);
  hash.Update("bc", 2);
  EXPECT_EQ(hash.Finish().Hex(), kAbc);
}

TEST(Digest, ReadsBackExactlyWhatItWrites) {
  EXPECT_EQ(Digest::FromHex(kAbc), Sha256Of("abc"));
  EXPECT_EQ(Digest::FromHex(std::string(kAbc).substr(1)), std::nullopt);
  EXPECT_EQ(Digest::FromHex(std::string(64, 'A')), std::nullopt);
  EXPECT_EQ(Digest::FromHex(std::string(63, '0') + "/"), std::nullopt);
}

}  // namespace
}  // namespace overcap
