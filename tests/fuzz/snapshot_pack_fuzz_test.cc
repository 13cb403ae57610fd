// SPDX-License-Identifier: Apache-2.0
// Packs, indexes and maps: what is accepted is exactly what would have been written.
#include "inputs.h"
#include "snapshot/format/bytes.h"
#include "snapshot/format/content_map.h"
#include "snapshot/format/pack_format.h"

namespace overcap {
namespace {

const std::vector<std::string> kWords = {std::string(1, '\0'),
                                         "\1",
                                         "\2",
                                         "\x7f",
                                         "\x80\x01",
                                         "\xff\xff\xff\xff\x0f",
                                         "\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
                                         "0",
                                         "l",
                                         "z",
                                         "c",
                                         "h",
                                         "m",
                                         "M",
                                         "d",
                                         std::string(32, 'i')};

std::string SampleFooter() {
  return EncodePackFooter({{BlockCodec::kStored, 3, 3, 1, {{Sha256Of("a"), 1}, {Sha256Of("b"), 2}}},
                           {BlockCodec::kZstd, 900, 70'000, 2, {{Sha256Of("c"), 70'000}}},
                           {BlockCodec::kLz4, 40, 100, 3, {{Sha256Of("d"), 99}, {Sha256Of("a"), 1}}}});
}

TEST(SnapshotPackFuzz, FootersAreReadOrRefused) {
  const std::vector<std::string> texts = {
      SampleFooter(), EncodePackFooter({{BlockCodec::kStored, 1, 1, 7, {{Digest(), 1}}}})};
  ForEachInput(Mutator(texts, kWords, 1).Gently(), [](const std::string& input) {
    const auto blocks = DecodePackFooter(input);
    if (!blocks) return ExpectOneLine(blocks.error(), ErrorCode::kCorrupt);
    EXPECT_EQ(EncodePackFooter(*blocks), input);
    for (const PackedBlock& block : *blocks) EXPECT_LE(block.raw_size, kBlockMost);
    return true;
  });
}

TEST(SnapshotPackFuzz, HeadsAndTailsAreReadOrRefused) {
  const std::vector<std::string> texts = {PackHead().Encode(),
                                          PackHead{ChunkKind::kMeta, true, Sha256Of("s").bytes}.Encode(),
                                          EncodePackTail(77), EncodePackTail(UINT32_MAX)};
  ForEachInput(Mutator(texts, kWords, 2).Gently(), [](const std::string& input) {
    const auto tail = DecodePackTail(input);
    EXPECT_EQ(tail ? EncodePackTail(*tail) : input, input);
    const auto head = PackHead::Decode(input);
    EXPECT_EQ(head ? head->Encode() : input, input);
    if (!head && !tail) return ExpectOneLine(head.error(), ErrorCode::kCorrupt);
    return true;
  });
}

TEST(SnapshotPackFuzz, IndexesAreReadOrRefused) {
  const std::string footer = SampleFooter();
  const auto size = static_cast<int64_t>(footer.size());
  PackIndex index;
  const std::string empty = EncodePackIndex(index);
  index.replaces = {Sha256Of("old")};
  index.packs.push_back({Sha256Of("p"), ChunkKind::kData, 5'000, size, footer});
  index.packs.push_back({Sha256Of("q"), ChunkKind::kMeta, 7'000, size + 16, footer});
  ForEachInput(Mutator({EncodePackIndex(index), empty}, kWords, 3).Gently(), [](const std::string& input) {
    const auto read = DecodePackIndex(input);
    if (!read) return ExpectOneLine(read.error(), ErrorCode::kCorrupt);
    EXPECT_EQ(EncodePackIndex(*read), input);
    return true;
  });
}

TEST(SnapshotPackFuzz, MapsAreReadOrRefused) {
  const ContentPart chunk{ContentPart::Kind::kChunk, 5, Sha256Of("c")},
      hole{ContentPart::Kind::kHole, 4096, {}}, below{ContentPart::Kind::kMap, 99, Sha256Of("m")};
  const std::vector<std::string> texts = {EncodeContentMap(0, {chunk, hole, chunk}),
                                          EncodeContentMap(2, {below, below})};
  ForEachInput(Mutator(texts, kWords, 4).Gently(), [&](const std::string& input) {
    const GetMeta get = [&](const Digest&) -> Result<std::string> { return input; };
    const auto parts = ReadContentMaps(Digest(), 4106, get);
    if (parts) {
      int64_t sum = 0;
      for (const ContentPart& part : *parts) sum += part.length;
      EXPECT_EQ(sum, 4106);
    }
    const auto map = DecodeContentMap(input);
    if (!map) return ExpectOneLine(map.error(), ErrorCode::kCorrupt);
    EXPECT_EQ(EncodeContentMap(map->level, map->parts), input);
    return true;
  });
}

TEST(SnapshotPackFuzz, BlocksGiveTheirBytesOrNothing) {
  std::string text, stored;
  for (int i = 0; i < 40; ++i) text += "a word or two, " + std::to_string(i * i);
  BlockCompressor compressor;
  ASSERT_EQ(compressor.Compress(text, &stored), BlockCodec::kZstd);
  const std::string lz4(
      "\x1f"
      "a\1\0KPaaaaa",
      11);
  BlockDecompressor decompressor;
  std::string raw;
  ForEachInput(Mutator({stored, lz4, text}, kWords, 5).Gently(), [&](const std::string& input) {
    bool any = false;
    for (const BlockCodec codec : {BlockCodec::kStored, BlockCodec::kLz4, BlockCodec::kZstd}) {
      for (const size_t size : {text.size(), size_t{100}}) {
        const auto result = decompressor.Decompress(codec, input, static_cast<int64_t>(size), &raw);
        if (!result) ExpectOneLine(result.error(), ErrorCode::kCorrupt);
        EXPECT_EQ(raw.size(), result ? size : 0);
        any |= result.has_value();
      }
    }
    return any;
  });
}

}  // namespace
}  // namespace overcap
