// SPDX-License-Identifier: Apache-2.0
#include "snapshot/format/pack_format.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "snapshot/format/bytes.h"

namespace overcap {
namespace {

PackedBlock Block(std::vector<uint32_t> sizes, BlockCodec codec = BlockCodec::kZstd) {
  PackedBlock block{.codec = codec, .stored_size = 0, .raw_size = 0, .check = 0x89abcdef, .chunks = {}};
  for (const uint32_t size : sizes) {
    block.chunks.push_back({Sha256Of(std::to_string(size)), size});
    block.raw_size += size;
  }
  block.stored_size = codec == BlockCodec::kStored ? block.raw_size : (block.raw_size + 1) / 2;
  return block;
}

ErrorCode CodeOfFooter(const std::vector<PackedBlock>& blocks) {
  const auto decoded = DecodePackFooter(EncodePackFooter(blocks));
  return decoded ? ErrorCode::kInternal : decoded.error().code;
}

TEST(PackFormat, AHeadIsReadBackAndNothingElseIsAHead) {
  PackHead head{.kind = ChunkKind::kMeta, .encrypted = true, .salt = Sha256Of("salt").bytes};
  const std::string bytes = head.Encode();
  ASSERT_EQ(bytes.size(), kPackHeadSize);
  const auto back = PackHead::Decode(bytes);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->kind, ChunkKind::kMeta);
  EXPECT_TRUE(back->encrypted);
  EXPECT_EQ(back->salt, head.salt);
  for (const size_t at : {0u, 8u, 9u, 10u, 31u}) {
    std::string wrong = bytes;
    wrong[at] = static_cast<char>(wrong[at] ^ 0x40);
    EXPECT_FALSE(PackHead::Decode(wrong)) << at;
  }
  EXPECT_FALSE(PackHead::Decode(bytes.substr(1)));
  EXPECT_FALSE(PackHead::Decode(bytes + "x"));
}

TEST(PackFormat, ATailSaysHowLongTheFooterIs) {
  EXPECT_EQ(EncodePackTail(0x01020304), std::string("\x04\x03\x02\x01ocpend2\n"));
  EXPECT_EQ(DecodePackTail(EncodePackTail(123'456)).value(), 123'456u);
  EXPECT_FALSE(DecodePackTail("1234ocpend1\n"));
  EXPECT_FALSE(DecodePackTail("234ocpend2\n"));
}

TEST(PackFormat, BlocksThatCannotBeAreRefused) {
  EXPECT_EQ(CodeOfFooter({}), ErrorCode::kCorrupt);
  EXPECT_EQ(CodeOfFooter({Block({})}), ErrorCode::kCorrupt);
  EXPECT_EQ(CodeOfFooter({Block({5, 0})}), ErrorCode::kCorrupt);
  EXPECT_EQ(CodeOfFooter({Block({kChunkMost + 1})}), ErrorCode::kCorrupt);
  EXPECT_EQ(CodeOfFooter({Block({kChunkMost, kChunkMost})}), ErrorCode::kCorrupt);
  PackedBlock wrong_sum = Block({100, 200});
  wrong_sum.raw_size = 301;
  EXPECT_EQ(CodeOfFooter({wrong_sum}), ErrorCode::kCorrupt);
  PackedBlock larger = Block({100});
  larger.stored_size = 116;
  EXPECT_EQ(CodeOfFooter({larger}), ErrorCode::kCorrupt);
  PackedBlock cut = Block({100}, BlockCodec::kStored);
  cut.stored_size = 99;
  EXPECT_EQ(CodeOfFooter({cut}), ErrorCode::kCorrupt);
  PackedBlock codec = Block({100});
  codec.codec = static_cast<BlockCodec>('b');
  EXPECT_EQ(CodeOfFooter({codec}), ErrorCode::kCorrupt);
  EXPECT_FALSE(DecodePackFooter(EncodePackFooter({Block({1, 2})}) + "x"));
}

TEST(PackFormat, CountsThatPromiseMoreThanThereIsCostNothing) {
  std::string bytes;
  AppendVarint(&bytes, uint64_t{1} << 60);
  EXPECT_FALSE(DecodePackFooter(bytes));
  bytes.assign("ocindx2\n");
  AppendVarint(&bytes, uint64_t{1} << 60);
  EXPECT_FALSE(DecodePackIndex(bytes));
}

RC_GTEST_PROP(PackFormat, FootersAreReadBack, ()) {
  const auto size = rc::gen::inRange<uint32_t>(1, kBlockTarget);
  const auto sizes = *rc::gen::nonEmpty(rc::gen::container<std::vector<std::vector<uint32_t>>>(
      rc::gen::resize(5, rc::gen::nonEmpty(rc::gen::container<std::vector<uint32_t>>(size)))));
  std::vector<PackedBlock> blocks;
  for (const std::vector<uint32_t>& of_block : sizes) {
    blocks.push_back(Block(of_block, blocks.size() % 2 == 0 ? BlockCodec::kStored : BlockCodec::kLz4));
  }
  const auto back = DecodePackFooter(EncodePackFooter(blocks));
  RC_ASSERT(back.has_value());
  RC_ASSERT(*back == blocks);
}

TEST(PackFormat, AnIndexIsReadBack) {
  const std::string footer = EncodePackFooter({Block({1, 2, 3})});
  PackIndex index;
  index.replaces = {Sha256Of("a"), Sha256Of("b")};
  index.packs.push_back(
      {Sha256Of("p"), ChunkKind::kData, 1'000, static_cast<int64_t>(footer.size()), footer});
  index.packs.push_back(
      {Sha256Of("q"), ChunkKind::kMeta, 2'000, static_cast<int64_t>(footer.size()) + 16, footer});
  const std::string bytes = EncodePackIndex(index);
  const auto back = DecodePackIndex(bytes);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->replaces, index.replaces);
  ASSERT_EQ(back->packs.size(), 2u);
  EXPECT_EQ(back->packs[1].kind, ChunkKind::kMeta);
  EXPECT_EQ(back->packs[1].footer, footer);
  EXPECT_EQ(EncodePackIndex(*back), bytes);
  EXPECT_FALSE(DecodePackIndex(bytes + "x"));
  EXPECT_FALSE(DecodePackIndex(bytes.substr(0, bytes.size() - 1)));
}

TEST(PackFormat, AnIndexWhoseSizesCannotBeIsRefused) {
  const std::string footer = EncodePackFooter({Block({1})});
  const auto size = static_cast<int64_t>(footer.size());
  const auto accepts = [&](int64_t pack_size, int64_t stored_footer) {
    PackIndex index;
    index.packs.push_back({Sha256Of("p"), ChunkKind::kData, pack_size, stored_footer, footer});
    return DecodePackIndex(EncodePackIndex(index)).has_value();
  };
  EXPECT_TRUE(accepts(1'000, size));
  EXPECT_FALSE(accepts(1'000, size + 1));
  EXPECT_FALSE(accepts(76 + size, size));
}

}  // namespace
}  // namespace overcap
