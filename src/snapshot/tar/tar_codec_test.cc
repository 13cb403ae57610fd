// SPDX-License-Identifier: Apache-2.0
#include "snapshot/tar/tar_codec.h"

#include <gtest/gtest.h>

#include "sys/random.h"

namespace overcap {
namespace {

std::string Sample(size_t size) {
  SeededRandom random(7);
  std::string text;
  while (text.size() < size) text += random.Below(3) == 0 ? std::to_string(random.Next()) : "the same again ";
  text.resize(size);
  return text;
}

std::string Compressed(const std::string& text, TarCodec codec) {
  TextSink out;
  auto sink = CompressInto(out, codec, 2);
  EXPECT_TRUE(sink);
  for (size_t at = 0; at < text.size(); at += 100'001) EXPECT_TRUE((*sink)->Write(text.substr(at, 100'001)));
  EXPECT_TRUE((*sink)->Finish());
  return out.text;
}

Result<std::string> Plain(const std::string& bytes) {
  TextSource source(bytes);
  OC_TRY(plain, Decompress(source, "x"));
  std::string out, buffer(70'001, '\0');
  while (true) {
    OC_TRY(count, plain->Read(buffer.data(), buffer.size()));
    if (count == 0) return out;
    out.append(buffer, 0, count);
  }
}

class TarCodecs : public testing::TestWithParam<TarCodec> {};

TEST_P(TarCodecs, WhatIsCompressedComesBack) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{5'000'000}}) {
    const std::string text = Sample(size);
    const auto plain = Plain(Compressed(text, GetParam()));
    ASSERT_TRUE(plain) << plain.error().message;
    EXPECT_TRUE(*plain == text);
  }
}

TEST_P(TarCodecs, FramesOneAfterTheOtherAreRead) {
  const std::string text = Sample(300'000), one = Compressed(text, GetParam());
  EXPECT_TRUE(Plain(one + one).value() == text + text);
}

TEST_P(TarCodecs, ACutIsFound) {
  if (GetParam() == TarCodec::kPlain) return;  // the tar itself has to tell
  const std::string bytes = Compressed(Sample(300'000), GetParam());
  for (size_t size = 8; size < bytes.size(); size += bytes.size() / 50) {
    const auto plain = Plain(bytes.substr(0, size));
    ASSERT_FALSE(plain) << size;
    EXPECT_EQ(plain.error().code, ErrorCode::kCorrupt);
  }
  EXPECT_FALSE(Plain(bytes.substr(0, bytes.size() - 1)));
}

TEST_P(TarCodecs, AFlippedBitIsFound) {
  if (GetParam() == TarCodec::kPlain) return;
  const std::string text = Sample(300'000), bytes = Compressed(text, GetParam());
  for (size_t at = 20; at < bytes.size(); at += bytes.size() / 40) {
    std::string bad = bytes;
    bad[at] = static_cast<char>(bad[at] ^ 4);
    EXPECT_FALSE(Plain(bad)) << at;
  }
}

INSTANTIATE_TEST_SUITE_P(All, TarCodecs,
                         testing::Values(TarCodec::kPlain, TarCodec::kGzip, TarCodec::kLz4, TarCodec::kZstd));

TEST(TarCodec, ForeignKindsAreNamed) {
  const auto plain =
      Plain(std::string("\xfd"
                        "7zXZ\0",
                        6));
  ASSERT_FALSE(plain);
  EXPECT_EQ(plain.error().code, ErrorCode::kUsage);
  EXPECT_EQ(plain.error().message, "'x' is compressed with xz, which is not read here");
}

TEST(TarCodec, NamesTellTheCodec) {
  EXPECT_EQ(TarCodecOfName("/a/b.tar"), TarCodec::kPlain);
  EXPECT_EQ(TarCodecOfName("b.tgz"), TarCodec::kGzip);
  EXPECT_EQ(TarCodecOfName("b.tar.lz4"), TarCodec::kLz4);
  EXPECT_EQ(TarCodecOfName("b.tar.zst"), TarCodec::kZstd);
  EXPECT_EQ(TarCodecOfName("b.zip"), std::nullopt);
}

}  // namespace
}  // namespace overcap
