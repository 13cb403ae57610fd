// SPDX-License-Identifier: Apache-2.0
#include "snapshot/repository/code_pin.h"

#include <gtest/gtest.h>

#include "snapshot/repository/chunk_reader.h"
#include "snapshot/repository/chunk_writer.h"
#include "snapshot/repository/testing/sample_repository.h"
#include "snapshot/repository/upkeep.h"

namespace overcap {
namespace {

Result<Digest> PinSample(const Repository& repository, const SampleFiles& files) {
  OC_TRY(writer, ChunkWriter::Start(repository));
  OC_TRY(tree, AddSampleTree(writer.get(), files));
  OC_TRY_VOID(writer->Pin(tree));
  return tree;
}

TEST(CodePin, KnowsThePacksOfItsTreeAndNoOthers) {
  const Repository repository = NewMemRepository();
  ASSERT_TRUE(CommitSample(repository, {{"other", "1"}}));
  ASSERT_TRUE(CommitSample(repository, {{"other", "unrelated"}}));
  const Result<Digest> tree = PinSample(repository, {{"a", "1"}, {"b", NoiseBytes(1, 200'000)}});
  ASSERT_TRUE(tree) << tree.error().message;
  const Result<ChunkIndex> index = LoadPinnedIndex(repository, *tree);
  ASSERT_TRUE(index) << index.error().message;
  EXPECT_EQ(KeysOf(repository.store(), "packs/").size(), 6u);
  EXPECT_EQ(index->pack_count(), 4u) << "its own two, and those in which '1' and the page of the folder were";
  EXPECT_TRUE(index->Find(Sha256Of("1")));
  EXPECT_TRUE(ChunkReader(repository, *index).Get(*tree));
}

TEST(CodePin, KeepsItsTreeFromEveryPrune) {
  const Repository repository = NewMemRepository();
  const Result<Digest> tree = PinSample(repository, {{"a", "1"}});
  ASSERT_TRUE(tree);
  ASSERT_TRUE(Prune(repository, {}));
  EXPECT_EQ(ReadSampleTree(repository, *tree), (SampleFiles{{"a", "1"}}));
  ASSERT_TRUE(repository.store().Remove("code/" + tree->Hex()));
  ASSERT_TRUE(Prune(repository, {}));
  EXPECT_EQ(KeysOf(repository.store(), "packs/").size(), 0u);
}

TEST(CodePin, IsRefusedWithAnyByteChangedOrMissing) {
  const Repository repository = NewMemRepository();
  const Result<Digest> tree = PinSample(repository, {{"a", "1"}});
  const std::string bytes = *repository.store().Get("code/" + tree->Hex());
  ASSERT_TRUE(DecodeCodePin(bytes));
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string flipped = bytes;
    flipped[at] = static_cast<char>(flipped[at] ^ 1);
    EXPECT_FALSE(DecodeCodePin(flipped)) << at;
    EXPECT_FALSE(DecodeCodePin(bytes.substr(0, at))) << at;
  }
}

}  // namespace
}  // namespace overcap
