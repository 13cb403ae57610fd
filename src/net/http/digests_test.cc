// SPDX-License-Identifier: Apache-2.0
#include "net/http/digests.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace overcap {
namespace {

std::span<const uint8_t> AsBytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

TEST(Digests, OfPiecesIsThatOfTheWhole) {
  const std::vector<std::string_view> pieces = {"a", "", "bc"};
  EXPECT_EQ(HexOf(Sha256OfPieces(pieces)),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(HexOf(Md5OfPieces(pieces)), "900150983cd24fb0d6963f7d28e17f72");
  EXPECT_EQ(HexOf(Sha256OfText("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(Digests, Base64IsAsTheStandardSays) {
  EXPECT_EQ(Base64Of(AsBytes("")), "");
  EXPECT_EQ(Base64Of(AsBytes("f")), "Zg==");
  EXPECT_EQ(Base64Of(AsBytes("fo")), "Zm8=");
  EXPECT_EQ(Base64Of(AsBytes("foobar")), "Zm9vYmFy");
}

TEST(Digests, RefusesWhatIsNotBase64) {
  for (const char* text : {"Zg", "Zg=", "Zg==Zg==", "Z===", "====", "Zm9v!mFy", "Zh==", "Zm9=", "Zg==\n"})
    EXPECT_FALSE(Base64Bytes(text)) << text;
}

RC_GTEST_PROP(Digests, Base64ComesBack, (const std::string& bytes)) {
  RC_ASSERT(Base64Bytes(Base64Of(AsBytes(bytes))) == bytes);
}

}  // namespace
}  // namespace overcap
