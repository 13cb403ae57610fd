// SPDX-License-Identifier: Apache-2.0
#include "snapshot/format/block_codec.h"

#include <gtest/gtest.h>
#include <random>
#include <rapidcheck/gtest.h>
#include <zstd.h>

namespace overcap {
namespace {

std::string RandomBytes(size_t size) {
  std::mt19937_64 random(7);
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

// Like program text: words of a small vocabulary.
std::string Words(size_t size) {
  static const char* const kWords[] = {"return ",      "const ", "auto ",  "(value)",  "; ",
                                       "std::vector<", "> ",     "tensor", "->size()", "\n  ",
                                       "if (",         "{ ",     "} ",     "0x1f"};
  std::mt19937_64 random(8);
  std::string text;
  while (text.size() < size) text += kWords[random() % std::size(kWords)];
  text.resize(size);
  return text;
}

std::string Back(BlockCodec codec, std::string_view stored, size_t size) {
  BlockDecompressor decompressor;
  std::string raw;
  const auto result = decompressor.Decompress(codec, stored, static_cast<int64_t>(size), &raw);
  EXPECT_TRUE(result) << result.error().message;
  return raw;
}

TEST(BlockCodec, TextIsCompressedAndComesBack) {
  BlockCompressor compressor;
  for (const size_t size : {1'000u, 5'000u, 524'288u, 4'194'304u}) {
    const std::string raw = Words(size);
    std::string out = "before ";
    const BlockCodec codec = compressor.Compress(raw, &out);
    EXPECT_NE(codec, BlockCodec::kStored) << size;
    EXPECT_LT(out.size(), raw.size() * 9 / 10);
    ASSERT_EQ(out.substr(0, 7), "before ");
    EXPECT_EQ(Back(codec, std::string_view(out).substr(7), raw.size()), raw);
  }
}

TEST(BlockCodec, BytesWithoutOrderAreStoredAsTheyAre) {
  BlockCompressor compressor;
  for (const size_t size : {1u, 30u, 5'000u, 524'288u}) {
    const std::string raw = RandomBytes(size);
    std::string out;
    EXPECT_EQ(compressor.Compress(raw, &out), BlockCodec::kStored);
    EXPECT_EQ(out, raw);
  }
}

TEST(BlockCodec, ABlockThatOnlyLooksLikeItPaysInTheMiddleIsStoredAfterAll) {
  std::string raw = RandomBytes(2'000'000);
  raw.replace(raw.size() / 3, 16'384, 16'384, 'a');
  std::string out;
  EXPECT_EQ(BlockCompressor().Compress(raw, &out), BlockCodec::kStored);
  EXPECT_EQ(out, raw);
}

TEST(BlockCodec, AChangeOfKindIsNoticedSoon) {
  BlockCompressor compressor;
  std::string out;
  const std::string text = Words(200'000), noise = RandomBytes(200'000);
  EXPECT_NE(compressor.Compress(text, &out), BlockCodec::kStored);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(compressor.Compress(noise, &out), BlockCodec::kStored);
  EXPECT_NE(compressor.Compress(text, &out), BlockCodec::kStored);
}

TEST(BlockCodec, NumbersThatOnlyZstdMakesSmallerAreLeftToIt) {
  std::mt19937_64 random(9);
  std::string raw(400'000, '\0');
  for (size_t i = 0; i < raw.size(); ++i) raw[i] = static_cast<char>(i % 2 == 0 ? random() : random() % 8);
  std::string out;
  EXPECT_EQ(BlockCompressor().Compress(raw, &out), BlockCodec::kZstd);
  EXPECT_LT(out.size(), raw.size() * 9 / 10);
}

TEST(BlockCodec, TheFrontOfABlockIsThereWhateverItsKind) {
  const std::string text = Words(700'000);
  std::string numbers = text;
  for (size_t i = 0; i < numbers.size(); i += 2) numbers[i] = static_cast<char>(i * i >> 7);
  BlockDecompressor decompressor;
  for (const std::string& raw : {text, numbers, RandomBytes(700'000)}) {
    std::string stored, back;
    const BlockCodec codec = BlockCompressor().Compress(raw, &stored);
    for (const size_t wanted : {size_t{1}, size_t{4'097}, size_t{131'072}, size_t{400'001}, raw.size()}) {
      ASSERT_TRUE(decompressor.DecompressFront(codec, stored, static_cast<int64_t>(raw.size()),
                                               static_cast<int64_t>(wanted), &back));
      EXPECT_EQ(back.substr(0, wanted), raw.substr(0, wanted)) << static_cast<char>(codec) << wanted;
    }
  }
}

TEST(BlockCodec, AFrontThatTheBlockDoesNotHoldIsDamage) {
  BlockDecompressor decompressor;
  std::string back;
  for (const size_t size : {size_t{1'000}, size_t{300'000}}) {
    std::string stored;
    const BlockCodec codec = BlockCompressor().Compress(Words(size), &stored);
    EXPECT_FALSE(
        decompressor.DecompressFront(codec, stored, 5'000'000, static_cast<int64_t>(size) + 1, &back));
    EXPECT_FALSE(decompressor.DecompressFront(codec, stored.substr(0, stored.size() / 2), 5'000'000,
                                              static_cast<int64_t>(size), &back));
    ASSERT_TRUE(decompressor.Decompress(codec, stored, static_cast<int64_t>(size), &back));
    EXPECT_EQ(back, Words(size));
  }
}

RC_GTEST_PROP(BlockCodec, WhateverIsCompressedComesBack, (const std::string& seed)) {
  const auto times = *rc::gen::inRange<size_t>(1, 4'000);
  std::string raw;
  for (size_t i = 0; i < times; ++i) raw += seed;
  if (raw.empty()) raw = "x";
  BlockCompressor compressor;
  std::string out;
  const BlockCodec codec = compressor.Compress(raw, &out);
  RC_ASSERT((codec == BlockCodec::kStored ? out == raw : out.size() < raw.size()));
  RC_ASSERT(Back(codec, out, raw.size()) == raw);
}

TEST(BlockCodec, ASizeThatIsNotThatOfTheBlockIsDamage) {
  BlockCompressor compressor;
  BlockDecompressor decompressor;
  const std::string raw = Words(10'000);
  std::string out;
  const BlockCodec codec = compressor.Compress(raw, &out);
  for (const BlockCodec as : {codec, BlockCodec::kStored, BlockCodec::kLz4, BlockCodec::kZstd}) {
    for (const int64_t size : {int64_t{-1}, int64_t{0}, int64_t{1}, int64_t{9'999}, int64_t{10'001},
                               kBlockMost, kBlockMost + 1, INT64_MAX}) {
      std::string back = "old";
      const auto result = decompressor.Decompress(as, out, size, &back);
      ASSERT_FALSE(result);
      EXPECT_EQ(result.error().code, ErrorCode::kCorrupt);
      EXPECT_EQ(back, "");
    }
  }
}

TEST(BlockCodec, AFrameThatUnpacksToGigabytesIsRefused) {
  const std::string zeros(50'000'000, '\0');
  std::string bomb(ZSTD_compressBound(zeros.size()), '\0');
  bomb.resize(ZSTD_compress(bomb.data(), bomb.size(), zeros.data(), zeros.size(), 19));
  std::string raw;
  EXPECT_FALSE(BlockDecompressor().Decompress(BlockCodec::kZstd, bomb, 1'000, &raw));
  EXPECT_LT(raw.capacity(), 2'000u);
}

}  // namespace
}  // namespace overcap
