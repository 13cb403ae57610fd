// SPDX-License-Identifier: Apache-2.0
#include "snapshot/repository/chunk_writer.h"

#include <gtest/gtest.h>
#include <thread>

#include "snapshot/repository/chunk_reader.h"
#include "snapshot/repository/object_keys.h"
#include "snapshot/repository/testing/sample_repository.h"
#include "stores/mem/mem_store.h"

namespace overcap {
namespace {

std::string ReadChunk(const Repository& repository, const Digest& id) {
  const ChunkIndex index = ChunkIndex::Load(repository).value();
  return ChunkReader(repository, index).Get(id).value();
}

TEST(ChunkWriter, WhatIsAddedCanBeReadBack) {
  for (const char* secret : {"", "a passphrase"}) {
    const Repository repository = NewMemRepository(secret);
    std::vector<std::string> chunks{"a", TextBytes(1, 5'000), NoiseBytes(2, 700'000),
                                    TextBytes(3, 4'000'000)};
    auto writer = ChunkWriter::Start(repository).value();
    auto lane = writer->NewLane();
    for (const std::string& chunk : chunks) ASSERT_TRUE(lane->Add(ChunkKind::kData, chunk)->is_new);
    ASSERT_TRUE(lane->Add(ChunkKind::kMeta, "a page")->is_new);
    ASSERT_TRUE(lane->Flush());
    const WriterTotals totals = writer->Finish().value();
    EXPECT_EQ(totals.new_chunks, 5);
    EXPECT_EQ(totals.packs, 2);
    for (const std::string& chunk : chunks) EXPECT_EQ(ReadChunk(repository, Sha256Of(chunk)), chunk);
    EXPECT_EQ(ReadChunk(repository, Sha256Of("a page")), "a page");
  }
}

TEST(ChunkWriter, AChunkIsStoredOnceWhoeverAddsIt) {
  const Repository repository = NewMemRepository();
  auto writer = ChunkWriter::Start(repository).value();
  std::vector<std::thread> threads;
  std::atomic<int> news = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      auto lane = writer->NewLane();
      for (uint64_t i = 0; i < 300; ++i) news += lane->Add(ChunkKind::kData, TextBytes(i, 3'000))->is_new;
      EXPECT_TRUE(lane->Flush());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(news, 300);
  EXPECT_EQ(writer->Finish()->new_chunks, 300);
  const ChunkIndex index = ChunkIndex::Load(repository).value();
  EXPECT_EQ(index.chunk_count(), 300);
  ChunkReader reader(repository, index);
  for (uint64_t i = 0; i < 300; ++i)
    EXPECT_EQ(reader.Get(Sha256Of(TextBytes(i, 3'000))), TextBytes(i, 3'000));
}

TEST(ChunkWriter, ManyPacksFromManyLanesAreAllThere) {
  const Repository repository = NewMemRepository();
  auto writer = ChunkWriter::Start(repository).value();
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      auto lane = writer->NewLane();
      for (uint64_t i = 0; i < 30; ++i) {
        EXPECT_TRUE(lane->Add(ChunkKind::kData, NoiseBytes(t * 1'000 + i, 1'000'000)));
      }
      EXPECT_TRUE(lane->Flush());
    });
  }
  for (std::thread& thread : threads) thread.join();
  const WriterTotals totals = writer->Finish().value();
  EXPECT_GE(totals.packs, 5);
  EXPECT_GT(totals.stored_bytes, 90'000'000);
  EXPECT_EQ(ChunkIndex::Load(repository)->chunk_count(), 90);
}

TEST(ChunkWriter, WhatAnEarlierWriterPutIsNotStoredAgainEvenWithoutItsIndex) {
  const Repository repository = NewMemRepository();
  {
    auto writer = ChunkWriter::Start(repository).value();
    auto lane = writer->NewLane();
    for (uint64_t i = 0; i < 20; ++i) ASSERT_TRUE(lane->Add(ChunkKind::kData, NoiseBytes(i, 1'000'000)));
    ASSERT_TRUE(lane->Flush());
    // It dies here: full packs are there, no index is.
  }
  EXPECT_EQ(KeysOf(repository.store(), "index/").size(), 0u);
  ASSERT_GE(KeysOf(repository.store(), "packs/").size(), 1u);
  auto writer = ChunkWriter::Start(repository).value();
  auto lane = writer->NewLane();
  int reused = 0;
  for (uint64_t i = 0; i < 20; ++i) reused += !lane->Add(ChunkKind::kData, NoiseBytes(i, 1'000'000))->is_new;
  EXPECT_GE(reused, 16);
  ASSERT_TRUE(lane->Flush());
  ASSERT_TRUE(writer->Finish());
  ChunkIndex::LoadReport report;
  ASSERT_TRUE(ChunkIndex::Load(repository, &report));
  EXPECT_EQ(report.footers_read, 0) << "its index names the packs that none had";
}

TEST(ChunkWriter, MetaChunksCanBeReadInEveryStateOfTheirBlock) {
  for (const char* secret : {"", "a passphrase"}) {
    const Repository repository = NewMemRepository(secret);
    auto writer = ChunkWriter::Start(repository).value();
    auto lane = writer->NewLane();
    const std::string page = TextBytes(9, 300'000), noise = NoiseBytes(9, 400'000);
    const Digest first = lane->Add(ChunkKind::kMeta, page)->id;
    EXPECT_EQ(writer->GetMeta(first), page) << "in an open block";
    const Digest second = lane->Add(ChunkKind::kMeta, noise)->id;
    EXPECT_EQ(writer->GetMeta(first), page) << "in an open pack";
    ASSERT_TRUE(lane->Flush());
    ASSERT_TRUE(writer->Finish());
    EXPECT_EQ(writer->GetMeta(second), noise) << "in the store";
    EXPECT_EQ(writer->GetMeta(Sha256Of("nothing")).error().code, ErrorCode::kNotFound);
    auto later = ChunkWriter::Start(repository).value();
    EXPECT_EQ(later->GetMeta(first), page) << "of another writer";
    EXPECT_TRUE(later->Has(first).value());
    EXPECT_FALSE(later->Has(Sha256Of("nothing")).value());
  }
}

TEST(ChunkWriter, AWriterIsKnownWhileItLives) {
  const Repository repository = NewMemRepository();
  {
    auto writer = ChunkWriter::Start(repository).value();
    EXPECT_EQ(KeysOf(repository.store(), "writers/").size(), 1u);
  }
  EXPECT_EQ(KeysOf(repository.store(), "writers/").size(), 0u);
}

TEST(ChunkWriter, ALaneThatWasNotFlushedFailsTheWriter) {
  const Repository repository = NewMemRepository();
  auto writer = ChunkWriter::Start(repository).value();
  auto lane = writer->NewLane();
  ASSERT_TRUE(lane->Add(ChunkKind::kData, "some bytes"));
  EXPECT_FALSE(writer->Finish());
  lane.reset();
  auto other = writer->NewLane();
  EXPECT_FALSE(other->Add(ChunkKind::kData, "other bytes"));
  EXPECT_FALSE(writer->Finish());
}

TEST(ChunkWriter, ChunksThatCannotBeAreRefused) {
  const Repository repository = NewMemRepository();
  auto writer = ChunkWriter::Start(repository).value();
  auto lane = writer->NewLane();
  EXPECT_FALSE(lane->Add(ChunkKind::kData, ""));
  EXPECT_FALSE(lane->Add(ChunkKind::kData, std::string(kChunkMost + 1, 'x')));
  EXPECT_TRUE(lane->Add(ChunkKind::kData, std::string(kChunkMost, 'x')));
}

// Puts of packs fail; everything else works.
class NoRoomStore : public MemStore {
 public:
  using MemStore::Put;
  Result<void> Put(const std::string& key, std::span<const std::string_view> pieces, PutMode mode) override {
    if (key.starts_with(kPacksPrefix)) return Fail(ErrorCode::kUnavailable, "no space left");
    return MemStore::Put(key, pieces, mode);
  }
};

TEST(ChunkWriter, AnErrorOfThePutReachesAllLanes) {
  const Repository repository = NewRepositoryIn(std::make_shared<NoRoomStore>());
  auto writer = ChunkWriter::Start(repository).value();
  auto lane = writer->NewLane(), other = writer->NewLane();
  Result<AddedChunk> added = AddedChunk();
  for (uint64_t i = 0; added && i < 200; ++i) added = lane->Add(ChunkKind::kData, NoiseBytes(i, 1'000'000));
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(other->Add(ChunkKind::kData, "x").error().message, "no space left");
  EXPECT_EQ(writer->Finish().error().message, "no space left");
}

TEST(ChunkWriter, ManyIndexesBecomeOne) {
  const Repository repository = NewMemRepository();
  for (uint64_t i = 0; i < 34; ++i) ASSERT_TRUE(CommitSample(repository, {{"file", TextBytes(i, 100)}}));
  EXPECT_EQ(KeysOf(repository.store(), "index/").size(), 1u);
  ChunkIndex::LoadReport report;
  const ChunkIndex index = ChunkIndex::Load(repository, &report).value();
  EXPECT_EQ(report.footers_read, 0);
  EXPECT_EQ(index.pack_count(), 68u);
  const std::vector<NamedSnapshot> snapshots = repository.Snapshots("").value();
  for (const NamedSnapshot& snapshot : snapshots) {
    EXPECT_TRUE(ReadSampleTree(repository, snapshot.record.tree));
  }
}

TEST(ChunkWriter, ASnapshotSaysWhatWasAddedForIt) {
  const Repository repository = NewMemRepository();
  const SampleFiles files{{"a", TextBytes(1, 1'000)}, {"b", NoiseBytes(2, 200'000)}, {"c", ""}};
  const NamedSnapshot first = CommitSample(repository, files).value();
  EXPECT_GT(first.record.new_bytes, 201'000);
  EXPECT_GT(first.record.stored_bytes, 200'000);
  EXPECT_EQ(ReadSampleTree(repository, first.record.tree), files);
  const NamedSnapshot second = CommitSample(repository, files).value();
  EXPECT_EQ(second.record.new_bytes, 0);
  EXPECT_EQ(second.record.stored_bytes, 0);
  EXPECT_EQ(second.record.tree, first.record.tree);
}

}  // namespace
}  // namespace overcap
