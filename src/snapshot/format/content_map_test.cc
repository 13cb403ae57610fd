// SPDX-License-Identifier: Apache-2.0
#include "snapshot/format/content_map.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "snapshot/format/block_codec.h"
#include "snapshot/format/bytes.h"
#include "snapshot/format/testing/meta_memory.h"

namespace overcap {
namespace {

using Kind = ContentPart::Kind;

ContentPart Chunk(int64_t length) {
  return {.kind = Kind::kChunk, .length = length, .id = Sha256Of(std::to_string(length))};
}
ContentPart Hole(int64_t length) {
  return {.kind = Kind::kHole, .length = length, .id = {}};
}

int64_t LengthOf(const std::vector<ContentPart>& parts) {
  int64_t sum = 0;
  for (const ContentPart& part : parts) sum += part.length;
  return sum;
}

std::vector<ContentPart> ManyParts(size_t count) {
  std::vector<ContentPart> parts;
  for (size_t i = 0; i < count; ++i)
    parts.push_back(i % 3 == 2 ? Hole(4096) : Chunk(static_cast<int64_t>(1 + i % 1000)));
  return parts;
}

TEST(ContentMap, AMapIsWrittenAsTheDocumentSays) {
  std::string expected("M\0\2c\x0a", 5);
  AppendDigest(&expected, Sha256Of("10"));
  expected += "h\x80\x20";
  EXPECT_EQ(EncodeContentMap(0, {Chunk(10), Hole(4096)}), expected);
}

TEST(ContentMap, MapsOfEveryHeightComeBack) {
  for (const size_t count : {1u, 2u, 4096u, 4097u, 9000u}) {
    MetaMemory memory;
    const std::vector<ContentPart> parts = ManyParts(count);
    const auto top = WriteContentMaps(parts, memory.Put());
    ASSERT_TRUE(top);
    EXPECT_EQ(memory.puts, count <= 4096 ? 1 : static_cast<int64_t>((count + 4095) / 4096 + 1));
    const auto back = ReadContentMaps(*top, LengthOf(parts), memory.Get());
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(*back, parts);
  }
}

TEST(ContentMap, AFileThatIsOneHoleHasAMap) {
  MetaMemory memory;
  const auto top = WriteContentMaps({Hole(int64_t{1} << 50)}, memory.Put());
  ASSERT_TRUE(top);
  EXPECT_EQ(ReadContentMaps(*top, int64_t{1} << 50, memory.Get()).value().size(), 1u);
}

TEST(ContentMap, ASizeThatIsNotThatOfTheFileIsDamage) {
  MetaMemory memory;
  const std::vector<ContentPart> parts = ManyParts(5'000);
  const Digest top = WriteContentMaps(parts, memory.Put()).value();
  for (const int64_t off : {-1, 1}) {
    const auto back = ReadContentMaps(top, LengthOf(parts) + off, memory.Get());
    ASSERT_FALSE(back);
    EXPECT_EQ(back.error().code, ErrorCode::kCorrupt);
  }
}

TEST(ContentMap, PartsThatCannotBeAreRefused) {
  const auto refused = [](int level, const std::vector<ContentPart>& parts) {
    const auto map = DecodeContentMap(EncodeContentMap(level, parts));
    return !map && map.error().code == ErrorCode::kCorrupt;
  };
  const ContentPart below{.kind = Kind::kMap, .length = 5, .id = Sha256Of("map")};
  EXPECT_FALSE(refused(0, {Chunk(1), Hole(1)}));
  EXPECT_FALSE(refused(3, {below}));
  EXPECT_TRUE(refused(0, {}));
  EXPECT_TRUE(refused(0, {Chunk(0)}));
  EXPECT_TRUE(refused(0, {Hole(0)}));
  EXPECT_TRUE(refused(0, {Hole(1), Hole(1)}));
  EXPECT_TRUE(refused(0, {below}));
  EXPECT_TRUE(refused(1, {Chunk(1)}));
  EXPECT_TRUE(refused(4, {below}));
  EXPECT_TRUE(refused(0, {Chunk(kChunkMost + 1)}));
  EXPECT_TRUE(refused(0, {Hole(INT64_MAX), Chunk(1)}));
  EXPECT_TRUE(refused(0, {Hole(-1)}));
  EXPECT_TRUE(refused(0, ManyParts(4097)));
  EXPECT_FALSE(DecodeContentMap(EncodeContentMap(0, {Chunk(1)}) + "x"));
  EXPECT_FALSE(DecodeContentMap(""));
}

TEST(ContentMap, AHoleBehindAHoleInTheMapBeforeIsRefused) {
  MetaMemory memory;
  const Digest left = memory.Put()(EncodeContentMap(0, {Chunk(5), Hole(5)})).value();
  const Digest right = memory.Put()(EncodeContentMap(0, {Hole(5), Chunk(5)})).value();
  const Digest top =
      memory.Put()(EncodeContentMap(1, {{Kind::kMap, 10, left}, {Kind::kMap, 10, right}})).value();
  EXPECT_FALSE(ReadContentMaps(top, 20, memory.Get()));
}

TEST(ContentMap, AMapThatLeadsToItselfEnds) {
  const std::string map = EncodeContentMap(3, {{Kind::kMap, 10, Sha256Of("itself")}});
  const GetMeta get = [&](const Digest&) -> Result<std::string> { return map; };
  EXPECT_FALSE(ReadContentMaps(Sha256Of("itself"), 10, get));
}

TEST(ContentMap, AFewMapsThatStandForBillionsOfPartsDoNotFillTheMemory) {
  MetaMemory memory;
  std::vector<ContentPart> parts(kMapParts, Chunk(1));
  int64_t length = kMapParts;
  Digest top = memory.Put()(EncodeContentMap(0, parts)).value();
  for (int level = 1; level < kMapLevels; ++level) {
    parts.assign(kMapParts, {Kind::kMap, length, top});
    length *= kMapParts;
    top = memory.Put()(EncodeContentMap(level, parts)).value();
  }
  const auto back = ReadContentMaps(top, length, memory.Get());
  ASSERT_FALSE(back);
  EXPECT_EQ(back.error().code, ErrorCode::kCorrupt);
}

TEST(ContentMap, WhatCouldNotBeReadBackIsNotWritten) {
  MetaMemory memory;
  EXPECT_FALSE(WriteContentMaps({}, memory.Put()));
  const auto top = WriteContentMaps(std::vector<ContentPart>(kContentParts + 1, Chunk(1)), memory.Put());
  ASSERT_FALSE(top);
  EXPECT_EQ(top.error().code, ErrorCode::kUsage);
  EXPECT_EQ(memory.puts, 0);
}

RC_GTEST_PROP(ContentMap, AnyPartsComeBack, ()) {
  const auto lengths =
      *rc::gen::nonEmpty(rc::gen::container<std::vector<int64_t>>(rc::gen::inRange<int64_t>(1, kChunkMost)));
  std::vector<ContentPart> parts;
  for (const int64_t length : lengths) {
    const bool hole = length % 3 == 0 && (parts.empty() || parts.back().kind != Kind::kHole);
    parts.push_back(hole ? Hole(length) : Chunk(length));
  }
  MetaMemory memory;
  const auto top = WriteContentMaps(parts, memory.Put());
  RC_ASSERT(top.has_value());
  RC_ASSERT(ReadContentMaps(*top, LengthOf(parts), memory.Get()).value() == parts);
}

}  // namespace
}  // namespace overcap
