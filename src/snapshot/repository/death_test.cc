// SPDX-License-Identifier: Apache-2.0
// A backup or a prune that is killed at any of its changes: earlier snapshots are whole, the next backup uses
// what was written, and the next prune finds all garbage.
#include <filesystem>
#include <gtest/gtest.h>

#include "snapshot/repository/testing/sample_repository.h"
#include "snapshot/repository/upkeep.h"
#include "stores/file/file_store.h"
#include "stores/mem/mem_store.h"
#include "stores/testing/fault_store.h"
#include "stores/testing/quick_folder.h"

namespace overcap {
namespace {

const SampleFiles kBefore{{"a", TextBytes(1, 5'000)}, {"b", TextBytes(2, 90'000)}};
const SampleFiles kGone{{"b", TextBytes(2, 90'000)}, {"old", TextBytes(3, 8'000)}};
const SampleFiles kNew{{"a", TextBytes(1, 5'000)}, {"c", TextBytes(4, 70'000)}, {"d", NoiseBytes(5, 3'000)}};

struct World {
  std::shared_ptr<Store> disk;
  NamedSnapshot before;

  explicit World(std::shared_ptr<Store> store) : disk(std::move(store)) {
    const Repository repository = NewRepositoryIn(disk);
    before = CommitSample(repository, kBefore).value();
    EXPECT_TRUE(repository.Forget(CommitSample(repository, kGone).value()));
  }

  Repository Open(std::shared_ptr<Store> store = nullptr) const {
    return Repository::Open({.store = store != nullptr ? std::move(store) : disk}).value();
  }

  void ExpectWhole() const {
    const Repository repository = Open();
    EXPECT_EQ(ReadSampleTree(repository, before.record.tree), kBefore);
    const std::vector<NamedSnapshot> snapshots = repository.Snapshots("").value();
    for (const NamedSnapshot& snapshot : snapshots) {
      EXPECT_TRUE(ReadSampleTree(repository, snapshot.record.tree));
    }
    const RepositoryVerifyReport report =
        VerifyRepository(repository, {.read_data = true, .workspace = "", .progress = nullptr}).value();
    EXPECT_TRUE(report.Sound()) << (report.damage.empty() ? "" : report.damage.front());
  }

  void ExpectNoGarbageAfterPrune() const {
    const Repository repository = Open();
    PruneOptions options;
    options.writer_dead_us = 0;
    options.repack_below = 1;
    ASSERT_TRUE(Prune(repository, options));
    EXPECT_EQ(KeysOf(*disk, "writers/"), std::vector<std::string>());
    EXPECT_EQ(KeysOf(*disk, "condemned/"), std::vector<std::string>());
    options.dry_run = true;
    EXPECT_EQ(Prune(repository, options)->removed_packs, 0);
  }
};

using NewDisk = std::function<std::shared_ptr<Store>()>;

// Kills `work` at its n-th change for all n; `check` looks at what it left.
void KillEverywhere(const NewDisk& new_disk, const std::function<void(const Repository&)>& work,
                    const std::function<void(const World&)>& check) {
  bool died = true;
  int64_t deaths = 0;
  for (int64_t n = 1; died && !::testing::Test::HasFailure(); ++n) {
    died = false;
    for (const StoreDeath when : {StoreDeath::kBefore, StoreDeath::kAfter}) {
      SCOPED_TRACE("dies at change " + std::to_string(n) +
                   (when == StoreDeath::kBefore ? ", before" : ", after"));
      const World world(new_disk());
      auto faulty = std::make_shared<FaultStore>(world.disk);
      const Repository repository = world.Open(faulty);
      faulty->DieAt(n, when);
      work(repository);
      if (!faulty->dead()) continue;
      died = true;
      ++deaths;
      check(world);
    }
  }
  EXPECT_GE(deaths, 8);
}

void CheckAfterBackup(const World& world) {
  world.ExpectWhole();
  const Repository repository = world.Open();
  const size_t packs = KeysOf(*world.disk, "packs/").size();
  const NamedSnapshot again = CommitSample(repository, kNew).value();
  EXPECT_EQ(ReadSampleTree(repository, again.record.tree), kNew);
  // Two packs are new in all; what the dead one put is not put again.
  EXPECT_EQ(KeysOf(*world.disk, "packs/").size(), std::max<size_t>(packs, 6));
  world.ExpectWhole();
  world.ExpectNoGarbageAfterPrune();
  world.ExpectWhole();
}

void CheckAfterPrune(const World& world) {
  world.ExpectWhole();
  world.ExpectNoGarbageAfterPrune();
  world.ExpectWhole();
}

TEST(Death, OfABackupAtEveryChangeInMemory) {
  KillEverywhere([] { return std::make_shared<MemStore>(); },
                 [](const Repository& repository) { (void)CommitSample(repository, kNew); },
                 CheckAfterBackup);
}

TEST(Death, OfABackupAtEveryChangeInAFolder) {
  const QuickFolder folder;
  int number = 0;
  KillEverywhere(
      [&]() -> std::shared_ptr<Store> {
        return FileStore::Open(folder.Path() + "/" + std::to_string(number++), true).value();
      },
      [](const Repository& repository) { (void)CommitSample(repository, kNew); }, CheckAfterBackup);
}

TEST(Death, OfAPruneAtEveryChange) {
  PruneOptions options;
  options.repack_below = 1;
  KillEverywhere([] { return std::make_shared<MemStore>(); },
                 [&](const Repository& repository) { (void)Prune(repository, options); }, CheckAfterPrune);
}

TEST(Death, OfARebuildAndBackupsAtEveryChange) {
  KillEverywhere([] { return std::make_shared<MemStore>(); },
                 [](const Repository& repository) {
                   (void)RebuildIndex(repository);
                   (void)RebuildIndex(repository);
                   for (uint64_t i = 0; i < 4; ++i)
                     (void)CommitSample(repository, {{"x", TextBytes(100 + i, 50)}});
                 },
                 CheckAfterPrune);
}

TEST(Death, AFullStoreFailsTheBackupAndNothingElse) {
  const World world(std::make_shared<MemStore>());
  auto faulty = std::make_shared<FaultStore>(world.disk);
  const Repository repository = world.Open(faulty);
  faulty->Add(StoreFault::Full());
  EXPECT_EQ(CommitSample(repository, kNew).error().code, ErrorCode::kUnavailable);
  faulty->ClearFaults();
  StoreFault packs = StoreFault::Full();
  packs.prefix = "packs/";
  faulty->Add(packs);
  EXPECT_EQ(CommitSample(repository, kNew).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(KeysOf(*world.disk, "writers/"), std::vector<std::string>());
  world.ExpectWhole();
  faulty->ClearFaults();
  EXPECT_TRUE(CommitSample(repository, kNew));
}

TEST(Death, ALoadOfTheIndexSurvivesAnIndexThatGoesWhileItIsRead) {
  const World world(std::make_shared<MemStore>());
  auto faulty = std::make_shared<FaultStore>(world.disk);
  const Repository repository = world.Open(faulty);
  bool merged = false;
  faulty->OnCall([&](const StoreCall& call) {
    if (merged || call.op != StoreOp::kGet || !call.key.starts_with("index/")) return;
    merged = true;
    EXPECT_TRUE(RebuildIndex(world.Open()));
  });
  ChunkIndex::LoadReport report;
  ASSERT_TRUE(ChunkIndex::Load(repository, &report));
  EXPECT_TRUE(merged);
  EXPECT_EQ(report.footers_read, 0);
  EXPECT_EQ(report.damage, std::vector<std::string>());
}

}  // namespace
}  // namespace overcap
