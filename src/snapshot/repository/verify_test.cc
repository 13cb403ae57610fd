// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "snapshot/repository/object_keys.h"
#include "snapshot/repository/presence_record.h"
#include "snapshot/repository/testing/sample_repository.h"
#include "snapshot/repository/upkeep.h"
#include "stores/mem/mem_store.h"
#include "stores/testing/fault_store.h"

namespace overcap {
namespace {

const SampleFiles kFiles{
    {"big", TextBytes(3, 200'000)}, {"small", "a few bytes"}, {"zeros", std::string(60'000, '\0')}};

RepositoryVerifyReport Verify(const Repository& repository, bool read_data = true) {
  RepositoryVerifyOptions options;
  options.read_data = read_data;
  return VerifyRepository(repository, options).value();
}

bool Names(const RepositoryVerifyReport& report, const std::string& key) {
  for (const std::string& line : report.damage) {
    if (line.find(key) != std::string::npos) return true;
  }
  return false;
}

TEST(Verify, AFreshRepositoryIsSound) {
  const Repository repository = NewMemRepository();
  ASSERT_TRUE(CommitSample(repository, kFiles));
  const RepositoryVerifyReport report = Verify(repository);
  EXPECT_TRUE(report.Sound());
  EXPECT_EQ(report.packs, 2);
  EXPECT_EQ(report.snapshots, 1);
  EXPECT_GT(report.bytes_read, 260'000);
  EXPECT_EQ(Verify(repository, false).bytes_read, 0);
}

// Zeros compress to what decodes to the same with many a flipped bit: only the checksum notices.
TEST(Verify, EveryFlippedBitIsFoundAndItsObjectNamed) {
  for (const char* secret : {"", "a passphrase"}) {
    auto disk = std::make_shared<MemStore>();
    auto faults = std::make_shared<FaultStore>(disk);
    const Repository repository = NewRepositoryIn(faults, secret);
    ASSERT_TRUE(
        CommitSample(repository, {{"text", TextBytes(1, 3'000)}, {"zeros", std::string(9'000, '\0')}}));
    SeededRandom random(7);
    for (const std::string& key : KeysOf(*disk, "")) {
      const uint64_t bits = static_cast<uint64_t>(disk->Stat(key)->size) * 8;
      const uint64_t step = 1 + bits / 150;
      for (uint64_t bit = random.Below(step); bit < bits; bit += step) {
        ASSERT_TRUE(faults->FlipStoredBit(key, bit));
        const RepositoryVerifyReport report = Verify(repository);
        EXPECT_TRUE(Names(report, key)) << key << " bit " << bit << (report.Sound() ? " sound" : "");
        ASSERT_TRUE(faults->FlipStoredBit(key, bit));
      }
    }
    EXPECT_TRUE(Verify(repository).Sound());
  }
}

TEST(Verify, DamageIsNamedByFileAndHarmsOnlyWhatItTouches) {
  auto disk = std::make_shared<MemStore>();
  FaultStore faults(disk);
  const Repository repository = NewRepositoryIn(disk);
  const SampleFiles files{{"bad", NoiseBytes(1, 600'000)}, {"good", NoiseBytes(2, 5'000)}};
  auto writer = ChunkWriter::Start(repository).value();
  SnapshotRecord record;
  record.tree = AddSampleTree(writer.get(), files, 1'000'000).value();
  record.workspace = "work";
  const NamedSnapshot snapshot = writer->Commit(record).value();
  std::string data_pack;
  for (const std::string& key : KeysOf(*disk, "packs/")) {
    if (disk->Stat(key)->size > 500'000) data_pack = key;
  }
  ASSERT_TRUE(faults.FlipStoredBit(data_pack, (64 + 1'000) * 8));
  const RepositoryVerifyReport report = Verify(repository);
  EXPECT_TRUE(Names(report, data_pack));
  ASSERT_EQ(report.files.size(), 1u);
  EXPECT_EQ(report.files[0].path, "bad");
  EXPECT_EQ(report.files[0].workspace, "work");
  EXPECT_EQ(report.files[0].snapshot, snapshot.ShortId());
  EXPECT_TRUE(Verify(repository, false).Sound()) << "only who reads the data can know";
}

TEST(Verify, ALostPackIsNamedWithTheFilesItHad) {
  const Repository repository = NewMemRepository();
  const NamedSnapshot one = CommitSample(repository, {{"first", NoiseBytes(1, 5'000)}}).value();
  const std::vector<std::string> before = KeysOf(repository.store(), "packs/");
  ASSERT_TRUE(CommitSample(repository, {{"first", NoiseBytes(1, 5'000)}, {"second", NoiseBytes(2, 9'000)}}));
  std::string lost;
  for (const std::string& key : KeysOf(repository.store(), "packs/")) {
    const bool fresh = std::find(before.begin(), before.end(), key) == before.end();
    if (fresh && repository.store().Stat(key)->size > 9'000) lost = key;
  }
  ASSERT_TRUE(repository.store().Remove(lost));
  const RepositoryVerifyReport report = Verify(repository, false);
  EXPECT_TRUE(Names(report, lost));
  ASSERT_EQ(report.files.size(), 1u);
  EXPECT_EQ(report.files[0].path, "second");
  EXPECT_TRUE(ReadSampleTree(repository, one.record.tree)) << "all else is there";
}

TEST(Verify, ASnapshotWhoseListOfFilesIsLostIsNamedAsAWhole) {
  const Repository repository = NewMemRepository();
  const auto commit = [&](const SampleFiles& files) {
    auto writer = ChunkWriter::Start(repository).value();
    SnapshotRecord record;
    record.tree = AddSampleTree(writer.get(), files).value();
    record.workspace = "work";
    record.files = static_cast<int64_t>(files.size());
    record.time_us = record.files * 1'000'000;
    return writer->Commit(record).value();
  };
  const NamedSnapshot one = commit({{"a", NoiseBytes(1, 5'000)}});
  const NamedSnapshot two = commit({{"a", NoiseBytes(2, 5'000)}, {"b", ""}});
  for (const NamedSnapshot* snapshot : {&one, &two}) {
    const auto index = ChunkIndex::Load(repository);
    ASSERT_TRUE(index);
    const auto found = index->Find(snapshot->record.tree);
    ASSERT_TRUE(found);
    ASSERT_TRUE(repository.store().Remove(PackKey(index->pack(found->pack).id)));
  }
  const RepositoryVerifyReport report = Verify(repository, false);
  ASSERT_EQ(report.files.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(report.files[i].path, "");
    EXPECT_EQ(report.files[i].snapshot, (i == 0 ? two : one).ShortId());
    EXPECT_EQ(report.files[i].files, (i == 0 ? two : one).record.files);
  }
}

TEST(Verify, ACutPackIsNamedAndWritersStoreItsChunksAgain) {
  auto disk = std::make_shared<MemStore>();
  const Repository repository = NewRepositoryIn(disk);
  const SampleFiles files{{"file", NoiseBytes(1, 5'000)}};
  ASSERT_TRUE(CommitSample(repository, files));
  for (const std::string& key : KeysOf(*disk, "packs/")) {
    const std::string bytes = disk->Get(key).value();
    if (bytes.size() <= 5'000) continue;
    ASSERT_TRUE(disk->Put(key, bytes.substr(0, bytes.size() - 9)));
    EXPECT_TRUE(Names(Verify(repository, false), key));
  }
  const NamedSnapshot again = CommitSample(repository, files).value();
  EXPECT_EQ(again.record.new_bytes, 5'000);
  EXPECT_EQ(ReadSampleTree(repository, again.record.tree), files);
}

TEST(Verify, PacksThatOnlyAnIndexStillNamesAreNoDamage) {
  const Repository repository = NewMemRepository();
  const NamedSnapshot gone = CommitSample(repository, {{"x", "old"}}).value();
  const std::vector<std::string> packs = KeysOf(repository.store(), "packs/");
  ASSERT_TRUE(repository.Forget(gone));
  for (const std::string& key : packs) ASSERT_TRUE(repository.store().Remove(key));
  ASSERT_TRUE(CommitSample(repository, {{"y", "new"}}));
  EXPECT_TRUE(Verify(repository).Sound());
}

TEST(Rebuild, AnIndexIsMadeAnewFromThePacks) {
  const Repository repository = NewMemRepository("a passphrase");
  const NamedSnapshot one = CommitSample(repository, kFiles).value();
  for (const std::string& key : KeysOf(repository.store(), "index/")) {
    ASSERT_TRUE(repository.store().Put(key, "rubbish"));
  }
  EXPECT_FALSE(Verify(repository).Sound());
  EXPECT_EQ(ReadSampleTree(repository, one.record.tree), kFiles) << "an index is only a cache";
  EXPECT_EQ(RebuildIndex(repository).value(), 2);
  EXPECT_TRUE(Verify(repository).Sound());
  ChunkIndex::LoadReport report;
  ASSERT_TRUE(ChunkIndex::Load(repository, &report));
  EXPECT_EQ(report.footers_read, 0);
}

TEST(Rebuild, APackWhoseFooterIsDamagedStaysKnown) {
  auto disk = std::make_shared<MemStore>();
  FaultStore faults(disk);
  const Repository repository = NewRepositoryIn(disk);
  const NamedSnapshot one = CommitSample(repository, kFiles).value();
  for (const std::string& key : KeysOf(*disk, "packs/")) {
    ASSERT_TRUE(faults.FlipStoredBit(key, static_cast<uint64_t>(disk->Stat(key)->size - 20) * 8));
  }
  EXPECT_EQ(RebuildIndex(repository).value(), 2);
  EXPECT_EQ(ReadSampleTree(repository, one.record.tree), kFiles);
}

}  // namespace
}  // namespace overcap
