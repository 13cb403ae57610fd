// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "snapshot/repository/object_keys.h"
#include "snapshot/repository/presence_record.h"
#include "snapshot/repository/testing/sample_repository.h"
#include "snapshot/repository/upkeep.h"
#include "snapshot/repository/writer_presence.h"
#include "stores/mem/mem_store.h"
#include "stores/testing/fault_store.h"

namespace overcap {
namespace {

// A clock that prunes move while they wait.
class PruneTest : public ::testing::Test {
 protected:
  PruneTest() : repository_(Repository::Open({.store = Made(), .clock = &clock_}).value()) {
    options_.sleep = [this](int64_t us) {
      clock_.Advance(us);
      if (while_waiting_) while_waiting_();
    };
  }

  std::shared_ptr<Store> Made() {
    disk_ = std::make_shared<MemStore>();
    NewRepositoryIn(disk_);
    return disk_;
  }

  NamedSnapshot Backup(const SampleFiles& files) {
    clock_.Advance(1'000'000);
    return CommitSample(repository_, files).value();
  }
  PruneReport PruneNow() { return Prune(repository_, options_).value(); }
  size_t Packs() const { return KeysOf(*disk_, "packs/").size(); }
  void ExpectWhole(const NamedSnapshot& snapshot, const SampleFiles& files) {
    EXPECT_EQ(ReadSampleTree(repository_, snapshot.record.tree), files);
  }

  std::shared_ptr<MemStore> disk_;
  FakeClock clock_;
  Repository repository_;
  PruneOptions options_;
  std::function<void()> while_waiting_;
};

const SampleFiles kOne{{"a", TextBytes(1, 5'000)}, {"b", NoiseBytes(2, 9'000)}};
const SampleFiles kTwo{{"b", NoiseBytes(2, 9'000)}, {"c", TextBytes(3, 150'000)}};

TEST_F(PruneTest, NothingGoesWhileAllIsUsed) {
  const NamedSnapshot one = Backup(kOne), two = Backup(kTwo);
  const size_t packs = Packs();
  const PruneReport report = PruneNow();
  EXPECT_EQ(report.removed_packs, 0);
  EXPECT_EQ(report.kept_packs, static_cast<int64_t>(packs));
  EXPECT_EQ(Packs(), packs);
  ExpectWhole(one, kOne);
  ExpectWhole(two, kTwo);
}

TEST_F(PruneTest, WhatNoSnapshotUsesGoesAndTheRestOfItsPacksIsCopied) {
  const NamedSnapshot one = Backup(kOne), two = Backup(kTwo);
  ASSERT_TRUE(repository_.Forget(one));
  options_.repack_below = 0.9;
  const PruneReport report = PruneNow();
  EXPECT_EQ(report.removed_packs, 2) << "data and tree of the first";
  EXPECT_GE(report.copied_bytes, 9'000);
  EXPECT_LT(report.copied_bytes, 9'100);
  EXPECT_EQ(report.waiting_packs, 0);
  ExpectWhole(two, kTwo);
  EXPECT_EQ(KeysOf(*disk_, "index/").size(), 1u);
  EXPECT_EQ(KeysOf(*disk_, "condemned/").size(), 0u);
  EXPECT_EQ(KeysOf(*disk_, "writers/").size(), 0u);
  EXPECT_EQ(PruneNow().removed_packs, 0);
}

// What killed uploads left is another matter than what a prune is for.
TEST_F(PruneTest, AServiceThatCannotBeCleanedIsPrunedAllTheSame) {
  auto faulty = std::make_shared<FaultStore>(disk_);
  StoreFault fault;
  fault.ops = {StoreOp::kCleanUp};
  fault.error = Error{ErrorCode::kUsage, "not implemented", ""};
  faulty->Add(fault);
  const Repository repository = *Repository::Open({faulty, &clock_});
  const auto report = Prune(repository, options_);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->not_cleaned, "not implemented");
  EXPECT_EQ(PruneNow().not_cleaned, "");
}

TEST_F(PruneTest, APackOfWhichEnoughIsUsedStays) {
  const NamedSnapshot one = Backup(kOne);
  Backup(kTwo);
  ASSERT_TRUE(repository_.Forget(one));
  options_.repack_below = 0.1;
  EXPECT_EQ(PruneNow().removed_packs, 1) << "only the tree";
}

TEST_F(PruneTest, ADryRunChangesNothing) {
  ASSERT_TRUE(repository_.Forget(Backup(kOne)));
  const std::vector<std::string> before = KeysOf(*disk_, "");
  options_.dry_run = true;
  EXPECT_EQ(PruneNow().removed_packs, 2);
  EXPECT_EQ(KeysOf(*disk_, ""), before);
}

TEST_F(PruneTest, TreesInUseBesideTheSnapshotsStay) {
  const NamedSnapshot one = Backup(kOne);
  ASSERT_TRUE(repository_.Forget(one));
  options_.list_also_live = [&]() -> Result<std::vector<Digest>> { return std::vector{one.record.tree}; };
  EXPECT_EQ(PruneNow().removed_packs, 0);
  options_.list_also_live = nullptr;
  options_.also_live = {one.record.tree};
  EXPECT_EQ(PruneNow().removed_packs, 0);
  ExpectWhole(one, kOne);
}

TEST_F(PruneTest, AWriterThatBeganBeforeIsWaitedForAndKeepsWhatItReliesOn) {
  ASSERT_TRUE(repository_.Forget(Backup(kOne)));
  auto writer = ChunkWriter::Start(repository_).value();
  const Digest tree = AddSampleTree(writer.get(), kOne).value();
  while_waiting_ = [&] {
    if (!writer) return;
    SnapshotRecord record;
    record.tree = tree;
    record.workspace = "sample";
    EXPECT_TRUE(writer->Commit(record));
    EXPECT_EQ(record.new_bytes, 0);
    writer.reset();
  };
  EXPECT_EQ(PruneNow().removed_packs, 0) << "its packs are let off";
  EXPECT_EQ(ReadSampleTree(repository_, tree), kOne);
  EXPECT_EQ(KeysOf(*disk_, "condemned/").size(), 0u);
}

TEST_F(PruneTest, WhatAPruneCouldNotWaitForTheNextOneRemoves) {
  ASSERT_TRUE(repository_.Forget(Backup(kOne)));
  auto slow = ChunkWriter::Start(repository_).value();
  options_.wait_us = 1'000'000;
  const PruneReport first = PruneNow();
  EXPECT_EQ(first.waiting_packs, 2);
  EXPECT_EQ(first.removed_packs, 0);
  ASSERT_EQ(first.writers.size(), 1u);
  EXPECT_NE(first.writers[0].find(", pid "), std::string::npos);
  EXPECT_EQ(KeysOf(*disk_, "condemned/").size(), 1u);
  slow.reset();
  // One that came later knows what is condemned: nobody waits for it.
  auto later = ChunkWriter::Start(repository_).value();
  auto lane = later->NewLane();
  EXPECT_TRUE(lane->Add(ChunkKind::kData, kOne.at("a"))->is_new) << "it does not rely on condemned packs";
  ASSERT_TRUE(lane->Flush());
  const PruneReport second = PruneNow();
  EXPECT_EQ(second.removed_packs, 2);
  EXPECT_EQ(KeysOf(*disk_, "condemned/").size(), 0u);
  EXPECT_TRUE(later->Finish());
}

TEST_F(PruneTest, AWriterWithoutABeatIsGivenUpAndNoticesIt) {
  ASSERT_TRUE(repository_.Forget(Backup(kOne)));
  auto writer = ChunkWriter::Start(repository_).value();
  const Digest tree = AddSampleTree(writer.get(), kOne).value();
  options_.wait_us = 4'000'000'000;
  const PruneReport report = PruneNow();
  EXPECT_EQ(report.removed_packs, 2);
  EXPECT_EQ(KeysOf(*disk_, "writers/").size(), 0u);
  SnapshotRecord record;
  record.tree = tree;
  record.workspace = "sample";
  const Result<NamedSnapshot> committed = writer->Commit(record);
  ASSERT_FALSE(committed);
  EXPECT_EQ(committed.error().code, ErrorCode::kConflict);
  EXPECT_EQ(repository_.Snapshots("")->size(), 0u);
}

TEST_F(PruneTest, AWriterGivenUpForNothingGoesOn) {
  Backup(kOne);
  auto writer = ChunkWriter::Start(repository_).value();
  const Digest tree = AddSampleTree(writer.get(), kOne).value();
  for (const std::string& key : KeysOf(*disk_, "writers/")) ASSERT_TRUE(disk_->Remove(key));
  SnapshotRecord record;
  record.tree = tree;
  record.workspace = "sample";
  EXPECT_TRUE(writer->Commit(record)) << "all that it needs is there";
  writer.reset();
  EXPECT_EQ(KeysOf(*disk_, "writers/").size(), 0u);
}

TEST_F(PruneTest, AWriterOfAProcessThatIsNoMoreIsNotWaitedFor) {
  ASSERT_TRUE(repository_.Forget(Backup(kOne)));
  auto presence = WriterPresence::Register(repository_, false).value();
  const std::string key = WriterKey(presence->id());
  WriterRecord record = DecodeWriterRecord(disk_->Get(key).value(), key).value();
  record.process.started += 1;  // its pid belongs to another process now
  ASSERT_TRUE(disk_->Put(key, EncodeWriterRecord(record)));
  options_.wait_us = 0;
  EXPECT_EQ(PruneNow().removed_packs, 2);
  EXPECT_FALSE(presence->StillThere().value());
}

TEST_F(PruneTest, ContentsTakenOverWhileTheirPacksAreCondemnedAreAConflict) {
  const NamedSnapshot one = Backup(kOne);
  ASSERT_TRUE(disk_->Put(CondemnedKey(std::string(32, 'a')),
                         EncodeCondemnedRecord({{*ParsePackKey(KeysOf(*disk_, "packs/")[0])}, 1})));
  auto writer = ChunkWriter::Start(repository_).value();
  SnapshotRecord record;
  record.tree = one.record.tree;
  record.workspace = "sample";
  EXPECT_EQ(writer->Commit(record).error().code, ErrorCode::kConflict);
  writer = ChunkWriter::Start(repository_).value();
  record.tree = AddSampleTree(writer.get(), kOne).value();
  EXPECT_TRUE(writer->Commit(record)) << "added again it is fine";
}

TEST_F(PruneTest, SnapshotsThatKeepComingWhileItReadsAreNoDamage) {
  Backup(kOne);
  auto store = std::make_shared<FaultStore>(disk_);
  std::vector<NamedSnapshot> came;
  std::vector<SampleFiles> files;
  store->OnCall([&](const StoreCall& call) {
    if (call.op != StoreOp::kList || call.key != "snapshots/" || came.size() == 12) return;
    files.push_back({{"new", NoiseBytes(100 + files.size(), 9'000)}});
    came.push_back(Backup(files.back()));
  });
  const Repository watched = Repository::Open({.store = store, .clock = &clock_}).value();
  const Result<PruneReport> report = Prune(watched, options_);
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(came.size(), 12u);
  for (size_t i = 0; i < came.size(); ++i) ExpectWhole(came[i], files[i]);
}

TEST_F(PruneTest, ADamagedSnapshotKeepsEverything) {
  const NamedSnapshot one = Backup(kOne);
  ASSERT_TRUE(repository_.Forget(Backup(kTwo)));
  FaultStore faults(disk_);
  ASSERT_TRUE(faults.FlipStoredBit(one.key.Text(), 100));
  const size_t packs = Packs();
  const Result<PruneReport> report = Prune(repository_, options_);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(Packs(), packs);
}

TEST_F(PruneTest, ATreeThatCannotBeReadKeepsEverything) {
  Backup(kOne);
  ASSERT_TRUE(repository_.Forget(Backup(kTwo)));
  for (const std::string& key : KeysOf(*disk_, "packs/")) {
    const bool meta = PackHead::Decode(disk_->Get(key, 0, kPackHeadSize).value())->kind == ChunkKind::kMeta;
    if (!meta) continue;
    ASSERT_TRUE(disk_->Remove(key));
  }
  const size_t packs = Packs();
  const Result<PruneReport> report = Prune(repository_, options_);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(Packs(), packs);
}

TEST_F(PruneTest, ADamagedCondemnedObjectStopsWritersAndPruneRemovesIt) {
  const std::string key = CondemnedKey(std::string(32, 'a'));
  ASSERT_TRUE(disk_->Put(key, "{}\nno hash\n"));
  EXPECT_EQ(ChunkWriter::Start(repository_).error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(KeysOf(*disk_, "writers/").size(), 0u);
  EXPECT_TRUE(Prune(repository_, options_));
  EXPECT_TRUE(ChunkWriter::Start(repository_));
}

TEST_F(PruneTest, PacksOfDeadWritersAreFound) {
  Backup(kOne);
  {
    auto writer = ChunkWriter::Start(repository_).value();
    auto lane = writer->NewLane();
    ASSERT_TRUE(lane->Add(ChunkKind::kData, "never committed"));
    ASSERT_TRUE(lane->Flush());
    ASSERT_TRUE(writer->Finish());
  }
  EXPECT_EQ(PruneNow().removed_packs, 1);
}

TEST_F(PruneTest, ManySmallPacksBecomeFew) {
  std::map<std::string, std::string> files;
  std::vector<NamedSnapshot> snapshots;
  for (uint64_t i = 0; i < 70; ++i) {
    files["f" + std::to_string(i)] = TextBytes(i, 100);
    snapshots.push_back(Backup(files));
  }
  EXPECT_EQ(Packs(), 140u);
  options_.repack_below = 0;
  PruneNow();
  EXPECT_EQ(Packs(), 2u);
  ExpectWhole(snapshots.back(), files);
  files.erase("f69");
  ExpectWhole(snapshots[68], files);
}

}  // namespace
}  // namespace overcap
