// SPDX-License-Identifier: Apache-2.0
#include "snapshot/repository/prune_plan.h"

#include <gtest/gtest.h>

namespace overcap {
namespace {

Digest Id(const std::string& name) {
  return Sha256Of(name);
}

// A pack of one block with chunks of 100 bytes.
void AddPack(ChunkIndex* index, const std::string& name, const std::vector<std::string>& chunks,
             bool condemned = false, uint32_t stored_size = 0) {
  PackedBlock block;
  block.raw_size = static_cast<uint32_t>(100 * chunks.size());
  block.stored_size = stored_size != 0 ? stored_size : block.raw_size;
  for (const std::string& chunk : chunks) block.chunks.push_back({Id(chunk), 100});
  const int64_t footer = 50;
  const auto size = static_cast<int64_t>(kPackHeadSize + kPackTailSize) + footer + block.stored_size;
  ASSERT_TRUE(index->AddPack(Id(name), size, footer, ChunkKind::kData, {block}, condemned));
}

ChunkSet Live(const std::vector<std::string>& chunks) {
  ChunkSet live;
  for (const std::string& chunk : chunks) live.Insert(Id(chunk));
  return live;
}

TEST(ChunkIndexOrder, AChunkIsFoundWhereItStays) {
  ChunkIndex index;
  AddPack(&index, "going", {"a", "b"}, true);
  AddPack(&index, "staying", {"b"});
  AddPack(&index, "later", {"b"}, true);
  EXPECT_EQ(index.Find(Id("b"))->pack, 1u);
  EXPECT_EQ(index.Find(Id("a"))->pack, 0u);
  EXPECT_FALSE(index.HasForWriters(Id("a")));
  EXPECT_TRUE(index.HasForWriters(Id("b")));
  EXPECT_FALSE(index.Find(Id("c")));
  EXPECT_EQ(index.chunk_count(), 4);
}

TEST(PrunePlan, AChunkInTwoPacksIsUsedInOneOfThem) {
  ChunkIndex index;
  AddPack(&index, "one", {"a", "b"});
  AddPack(&index, "two", {"a", "c"});
  const std::vector<PackUse> use = MeasureUse(index, Live({"a", "c"}));
  EXPECT_EQ(use[0].used_bytes, 100);
  EXPECT_EQ(use[1].used_bytes, 100);
  EXPECT_EQ(use[0].raw_bytes, 200);
}

TEST(PrunePlan, PacksGoAreCopiedOrStayByTheirUse) {
  ChunkIndex index;
  AddPack(&index, "unused", {"a"});
  AddPack(&index, "half", {"b", "c"});
  AddPack(&index, "full", {"d"});
  AddPack(&index, "settled", {"e"});
  const ChunkSet live = Live({"b", "d"});
  const PrunePlan plan = PlanPrune(index, MeasureUse(index, live), 0.6, {Id("settled")});
  EXPECT_EQ(plan.remove, std::vector<uint32_t>{0});
  EXPECT_EQ(plan.copy, std::vector<uint32_t>{1});
  EXPECT_EQ(plan.keep, std::vector<uint32_t>{2});
  EXPECT_EQ(PlanPrune(index, MeasureUse(index, live), 0.5, {}).copy, std::vector<uint32_t>{});
}

TEST(PrunePlan, ManySmallPacksBecomeFew) {
  ChunkIndex index;
  ChunkSet live;
  for (size_t i = 0; i <= kSmallPacksMost; ++i) {
    AddPack(&index, "pack" + std::to_string(i), {std::to_string(i)});
    live.Insert(Id(std::to_string(i)));
  }
  AddPack(&index, "large", {"x"}, false, 2 * kSmallPack);
  live.Insert(Id("x"));
  const PrunePlan plan = PlanPrune(index, MeasureUse(index, live), 0.6, {});
  EXPECT_EQ(plan.copy.size(), kSmallPacksMost + 1);
  EXPECT_EQ(plan.keep.size(), 1u);
}

TEST(PrunePlan, APackWithTheOnlyCopyOfAUsedChunkIsLetOff) {
  ChunkIndex index;
  AddPack(&index, "one", {"a"}, true);
  AddPack(&index, "two", {"a", "b"}, true);
  AddPack(&index, "three", {"b", "c"}, true);
  AddPack(&index, "stays", {"b"});
  const std::unordered_set<Digest> all{Id("one"), Id("two"), Id("three")};
  EXPECT_EQ(PacksThatMayGo(index, Live({"a", "b"}), all), std::vector<uint32_t>{2});
  EXPECT_EQ(PacksThatMayGo(index, Live({"b"}), all), (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_EQ(PacksThatMayGo(index, Live({}), {Id("two")}), std::vector<uint32_t>{1});
}

TEST(PrunePlan, AWriterIsDeadBySignsOnly) {
  EXPECT_FALSE(IsDead({.same_beat_us = 99, .behind_us = 99}, 100));
  EXPECT_TRUE(IsDead({.same_beat_us = 100}, 100));
  EXPECT_TRUE(IsDead({.behind_us = 100}, 100));
  EXPECT_TRUE(IsDead({.surely_gone = true}, 100));
}

TEST(PrunePlan, OnlyWritersThatDoNotKnowAreWaitedFor) {
  WriterRecord writer;
  EXPECT_TRUE(MustWaitFor(writer, "one"));
  writer.knows = {"one"};
  EXPECT_FALSE(MustWaitFor(writer, "one"));
  EXPECT_TRUE(MustWaitFor(writer, "two"));
  writer.prune = true;
  EXPECT_FALSE(MustWaitFor(writer, "two"));
}

}  // namespace
}  // namespace overcap
