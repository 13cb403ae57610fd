// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <thread>

#include "snapshot/repository/chunk_reader.h"
#include "snapshot/repository/testing/sample_repository.h"
#include "stores/mem/mem_store.h"
#include "stores/testing/fault_store.h"

namespace overcap {
namespace {

constexpr uint64_t kChunks = 160;

std::string ChunkBytes(uint64_t number) {
  return NoiseBytes(number, 50'000);
}

// One pack of 54 blocks with three chunks each, the last one with one.
class PackReaderTest : public ::testing::TestWithParam<const char*> {
 protected:
  PackReaderTest()
      : disk_(std::make_shared<MemStore>()),
        faults_(std::make_shared<FaultStore>(disk_)),
        repository_(NewRepositoryIn(faults_, GetParam())) {
    auto writer = ChunkWriter::Start(repository_).value();
    auto lane = writer->NewLane();
    for (uint64_t i = 0; i < kChunks; ++i) EXPECT_TRUE(lane->Add(ChunkKind::kData, ChunkBytes(i)));
    EXPECT_TRUE(lane->Flush());
    EXPECT_TRUE(writer->Finish());
    index_ = ChunkIndex::Load(repository_).value();
  }

  std::vector<WantedBlock> All() const {
    std::vector<WantedBlock> all;
    for (uint32_t block = 0; block < index_.pack(0).blocks.size(); ++block) {
      all.push_back({block, {}});
      index_.ForEachInBlock(0, block, [&](const Digest&, const ChunkPlace& place) {
        all.back().chunks.push_back(place.chunk);
      });
    }
    return all;
  }

  // How many chunks came right, and how many with an error.
  std::pair<int, int> Read(const std::vector<WantedBlock>& wanted) {
    std::pair<int, int> counts;
    PackReader reader(repository_, index_);
    const Result<void> read = reader.Read(0, wanted, [&](const BlockChunk& chunk) -> Result<void> {
      ++(chunk.error == nullptr ? counts.first : counts.second);
      const std::string bytes = chunk.error == nullptr ? ChunkBytes(chunk.block * 3 + chunk.chunk) : "";
      EXPECT_TRUE(chunk.bytes == bytes);
      return {};
    });
    EXPECT_TRUE(read);
    return counts;
  }

  std::shared_ptr<MemStore> disk_;
  std::shared_ptr<FaultStore> faults_;
  Repository repository_;
  ChunkIndex index_;
};

TEST_P(PackReaderTest, AllChunksComeInOrderWithFewReads) {
  ASSERT_EQ(index_.pack_count(), 1u);
  const int64_t before = faults_->CallsOf(StoreOp::kGet);
  EXPECT_EQ(Read(All()), std::make_pair(int{kChunks}, 0));
  EXPECT_LE(faults_->CallsOf(StoreOp::kGet) - before, 4);
}

TEST_P(PackReaderTest, OnlyWhatIsWantedComes) {
  const int64_t before = faults_->CallsOf(StoreOp::kGet);
  EXPECT_EQ(Read({{0, {2}}, {5, {0, 1}}, {13, {0}}}), std::make_pair(4, 0));
  EXPECT_LE(faults_->CallsOf(StoreOp::kGet) - before, 4) << "three far blocks, and the head once";
  EXPECT_EQ(Read({}), std::make_pair(0, 0));
}

TEST_P(PackReaderTest, ADamagedBlockHarmsNoOther) {
  const auto bit = static_cast<uint64_t>(index_.pack(0).blocks[1].offset + 75'000) * 8;
  ASSERT_TRUE(faults_->FlipStoredBit(KeysOf(*disk_, "packs/")[0], bit));
  EXPECT_EQ(Read(All()), std::make_pair(int{kChunks} - 3, 3));
}

TEST_P(PackReaderTest, APartThatCannotBeReadHarmsNoOther) {
  StoreFault fault;
  fault.ops = {StoreOp::kGet};
  fault.prefix = "packs/";
  fault.skip = *GetParam() != '\0' ? 2 : 1;  // the first block, and the head, can
  fault.times = 1;
  fault.error = Error{ErrorCode::kCorrupt, "bad sector", ""};
  faults_->Add(fault);
  const auto [good, bad] = Read(All());
  EXPECT_EQ(good + bad, int{kChunks});
  EXPECT_LE(bad, 3);
}

TEST_P(PackReaderTest, AnErrorOfTheStoreOrTheCallerEndsIt) {
  PackReader reader(repository_, index_);
  int calls = 0;
  const Result<void> stopped = reader.Read(0, All(), [&](const BlockChunk&) -> Result<void> {
    ++calls;
    return Fail(ErrorCode::kConflict, "stop");
  });
  EXPECT_EQ(stopped.error().message, "stop");
  EXPECT_EQ(calls, 1);
  StoreFault fault;
  fault.error = Error{ErrorCode::kUnavailable, "no connection", ""};
  faults_->Add(fault);
  const Result<void> gone = reader.Read(0, All(), [](const BlockChunk&) -> Result<void> { return {}; });
  EXPECT_EQ(gone.error().code, ErrorCode::kUnavailable);
}

TEST_P(PackReaderTest, ALostPackIsToldForEachChunk) {
  ASSERT_TRUE(disk_->Remove(KeysOf(*disk_, "packs/")[0]));
  EXPECT_EQ(Read(All()), std::make_pair(0, int{kChunks}));
}

TEST_P(PackReaderTest, SingleChunksAreReadFromManyThreads) {
  ChunkReader reader(repository_, index_);
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < kChunks; ++i) {
        const std::string bytes = ChunkBytes((i * 7 + t) % kChunks);
        EXPECT_EQ(reader.Get(Sha256Of(bytes)), bytes);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(reader.Get(Sha256Of("none")).error().code, ErrorCode::kNotFound);
}

INSTANTIATE_TEST_SUITE_P(PlainAndEncrypted, PackReaderTest, ::testing::Values("", "a passphrase"));

}  // namespace
}  // namespace overcap
