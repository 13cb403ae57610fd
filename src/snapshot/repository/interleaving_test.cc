// SPDX-License-Identifier: Apache-2.0
// Backups, prunes and forgets of several hosts at once, call by call in every order that a seed gives, some
// of them killed, some taken for dead though they live: no chunk of a snapshot is ever lost.
#include <atomic>
#include <gtest/gtest.h>
#include <mutex>

#include "snapshot/format/tree_pages.h"
#include "snapshot/repository/chunk_reader.h"
#include "snapshot/repository/testing/sample_repository.h"
#include "snapshot/repository/testing/stepped_store.h"
#include "snapshot/repository/upkeep.h"
#include "stores/mem/mem_store.h"

namespace overcap {
namespace {

constexpr uint64_t kRounds = 500;
constexpr uint64_t kContents = 10;  // that all snapshots are made of

std::string ContentOf(uint64_t number) {
  return TextBytes(number, 300 + number * 7);
}

// What happened over all rounds, so that the test knows it tested something.
struct Tally {
  std::atomic<int64_t> committed = 0, conflicts = 0, killed = 0, pruned = 0, removed = 0, copied = 0,
                       prune_errors = 0, gone_on = 0;
};

// One world of a round.
class Round {
 public:
  Round(uint64_t seed, Tally* tally) : seed_(seed), tally_(tally), disk_(std::make_shared<MemStore>()) {
    SeededRandom random(seed);
    NewRepositoryIn(disk_);
    for (int i = 0; i < 4; ++i) Commit(disk_, random.Next(), false);
    for (int i = 0; i < 3; ++i) Forget(disk_, random.Next());
  }

  void Play() {
    SeededRandom random(seed_ ^ 0x5eed);
    StepStage stage(random.Next());
    const uint64_t actors = 4 + random.Below(4);
    for (uint64_t i = 0; i < actors; ++i) {
      const uint64_t kind = random.Below(10), own = random.Next();
      stage.AddActor(
          disk_,
          [this, kind, own](std::shared_ptr<Store> store) {
            if (kind < 4) Commit(store, own, kind < 3);
            if (kind >= 4 && kind < 7) PruneOnce(store, own);
            if (kind >= 7) Forget(store, own);
          },
          15);
    }
    stage.Play();
  }

  // Everything that is named must be whole.
  void Check() {
    const Repository repository = Open(disk_, nullptr, nullptr);
    const std::vector<NamedSnapshot> snapshots = repository.Snapshots("").value();
    for (const NamedSnapshot& snapshot : snapshots) {
      const Result<SampleFiles> files = ReadSampleTree(repository, snapshot.record.tree);
      ASSERT_TRUE(files) << "seed " << seed_ << ": " << files.error().message;
      ASSERT_EQ(*files, expected_.at(snapshot.record.tree)) << "seed " << seed_;
    }
  }

  // Whatever died where: two prunes later only what is used is left.
  void CheckNoGarbageStays() {
    FakeClock clock;
    const Repository repository = Open(disk_, &clock, nullptr);
    PruneOptions options;
    options.wait_us = 3'600'000'000;
    options.repack_below = 1;
    options.writer_dead_us = 0;  // all actors have ended
    options.sleep = [&](int64_t us) { clock.Advance(us); };
    for (int i = 0; i < 2; ++i) {
      const Result<PruneReport> report = Prune(repository, options);
      ASSERT_TRUE(report) << "seed " << seed_ << ": " << report.error().message;
      EXPECT_EQ(report->waiting_packs, 0) << "seed " << seed_;
    }
    EXPECT_EQ(KeysOf(*disk_, "condemned/").size(), 0u) << "seed " << seed_;
    EXPECT_EQ(KeysOf(*disk_, "writers/").size(), 0u) << "seed " << seed_;
    options.dry_run = true;
    EXPECT_EQ(Prune(repository, options)->removed_packs, 0) << "seed " << seed_;
  }

 private:
  static Repository Open(std::shared_ptr<Store> store, const Clock* clock, Random* random) {
    return Repository::Open({.store = std::move(store), .clock = clock, .random = random}).value();
  }

  void Commit(const std::shared_ptr<Store>& store, uint64_t seed, bool take_over) {
    SeededRandom random(seed);
    FakeClock clock;
    clock.Advance(static_cast<int64_t>(random.Below(1'000'000'000)));
    const Result<Repository> repository =
        Repository::Open({.store = store, .clock = &clock, .random = &random});
    if (!repository) return Count(repository.error());
    const Result<void> done = CommitIn(*repository, &random, take_over);
    if (!done) Count(done.error());
  }

  void Count(const Error& error) {
    tally_->conflicts += error.code == ErrorCode::kConflict;
    tally_->killed += error.code == ErrorCode::kUnavailable;
    EXPECT_TRUE(error.code == ErrorCode::kConflict || error.code == ErrorCode::kUnavailable ||
                error.code == ErrorCode::kNotFound)
        << "seed " << seed_ << ": " << error.message;
  }

  // `take_over`: what an earlier snapshot has is not added again, as a backup does with unchanged files.
  Result<void> CommitIn(const Repository& repository, SeededRandom* random, bool take_over) {
    OC_TRY(writer, ChunkWriter::Start(repository));
    SampleFiles files;
    std::map<std::string, SnapshotEntry> known;
    if (take_over) OC_TRY_VOID(TakeOver(repository, writer.get(), random, &files, &known));
    for (uint64_t i = random->Below(5); i > 0; --i) {
      const std::string path = "f" + std::to_string(random->Below(8));
      files[path] = ContentOf(random->Below(kContents));
      known.erase(path);
    }
    OC_TRY(tree, AddTree(writer.get(), files, known));
    {
      const std::lock_guard lock(mutex_);
      expected_[tree] = files;
    }
    SnapshotRecord record;
    record.tree = tree;
    record.workspace = "sim";
    record.time_us = repository.clock().WallUs();
    OC_TRY_VOID(writer->Commit(record));
    ++tally_->committed;
    return {};
  }

  Result<void> TakeOver(const Repository& repository, ChunkWriter* writer, SeededRandom* random,
                        SampleFiles* files, std::map<std::string, SnapshotEntry>* known) {
    OC_TRY(snapshots, repository.Snapshots(""));
    if (snapshots.empty()) return {};
    const Digest tree = snapshots[random->Below(snapshots.size())].record.tree;
    TreeReader reader(tree, [&](const Digest& id) { return writer->GetMeta(id); });
    for (;;) {
      OC_TRY(entry, reader.Next());
      if (entry == nullptr) break;
      if (entry->IsFile()) known->emplace(entry->path, *entry);
    }
    const std::lock_guard lock(mutex_);
    *files = expected_.at(tree);
    return {};
  }

  static Result<Digest> AddTree(ChunkWriter* writer, const SampleFiles& files,
                                const std::map<std::string, SnapshotEntry>& known) {
    const auto lane = writer->NewLane();
    TreeBuilder builder([&](std::string_view meta) -> Result<Digest> {
      OC_TRY(added, lane->Add(ChunkKind::kMeta, meta));
      return added.id;
    });
    SnapshotEntry root;
    root.type = SnapshotEntryType::kFolder;
    OC_TRY_VOID(builder.Add(root));
    for (const auto& [path, bytes] : files) {
      SnapshotEntry entry;
      entry.path = path;
      entry.size = static_cast<int64_t>(bytes.size());
      if (const auto it = known.find(path); it != known.end()) {
        entry = it->second;
      } else {
        OC_TRY(added, lane->Add(ChunkKind::kData, bytes));
        entry.content = {FileContent::Kind::kChunk, added.id};
      }
      OC_TRY_VOID(builder.Add(entry));
    }
    OC_TRY(tree, builder.Finish());
    OC_TRY_VOID(lane->Flush());
    return tree;
  }

  void PruneOnce(const std::shared_ptr<Store>& store, uint64_t seed) {
    SeededRandom random(seed);
    FakeClock clock;
    const Result<Repository> repository =
        Repository::Open({.store = store, .clock = &clock, .random = &random});
    if (!repository) return;
    PruneOptions options;
    options.repack_below = static_cast<double>(random.Below(100)) / 100;
    // Some wait so long that they take writers for dead which are only slow.
    options.wait_us = random.Below(3) != 0 ? 4'000'000'000 : static_cast<int64_t>(random.Below(300'000'000));
    options.sleep = [&](int64_t us) {
      clock.Advance(us * 200);      // 30 minutes pass in a few calls
      (void)store->Stat("config");  // lets others go on
    };
    const Result<PruneReport> report = Prune(*repository, options);
    if (!report) {
      ++tally_->prune_errors;
      return;
    }
    ++tally_->pruned;
    tally_->removed += report->removed_packs;
    tally_->copied += report->copied_bytes;
    tally_->gone_on += report->waiting_packs;
  }

  void Forget(const std::shared_ptr<Store>& store, uint64_t seed) {
    const Result<Repository> repository = Repository::Open({.store = store});
    if (!repository) return;
    const Result<std::vector<NamedSnapshot>> snapshots = repository->Snapshots("");
    if (!snapshots || snapshots->empty()) return;
    (void)repository->Forget((*snapshots)[seed % snapshots->size()]);
  }

  const uint64_t seed_;
  Tally* tally_;
  const std::shared_ptr<MemStore> disk_;
  std::mutex mutex_;  // guards expected_
  std::map<Digest, SampleFiles> expected_;
};

TEST(Interleaving, NoChunkOfASnapshotIsEverLostWhateverHappensAtTheSameTime) {
  Tally tally;
  // OVERCAP_TEST_SEED=7 plays one round again; OVERCAP_TEST_ROUNDS=100000 looks for long.
  const char* only = getenv("OVERCAP_TEST_SEED");
  const char* many = getenv("OVERCAP_TEST_ROUNDS");
  const uint64_t first = only != nullptr ? strtoull(only, nullptr, 10) : 0;
  const uint64_t rounds = only != nullptr ? 1 : many != nullptr ? strtoull(many, nullptr, 10) : kRounds;
  for (uint64_t seed = first; seed < first + rounds; ++seed) {
    Round round(seed, &tally);
    round.Play();
    round.Check();
    round.CheckNoGarbageStays();
    round.Check();
    if (HasFailure()) break;
  }
  RecordProperty("committed", std::to_string(tally.committed));
  printf(
      "%ld committed, %ld conflicts, %ld killed, %ld prunes (%ld failed) removed %ld packs, copied %ld "
      "bytes, "
      "left %ld\n",
      tally.committed.load(), tally.conflicts.load(), tally.killed.load(), tally.pruned.load(),
      tally.prune_errors.load(), tally.removed.load(), tally.copied.load(), tally.gone_on.load());
  if (rounds < kRounds) return;
  EXPECT_GT(tally.committed, 2'000);
  EXPECT_GT(tally.conflicts, 0);
  EXPECT_GT(tally.killed, 50);
  EXPECT_GT(tally.removed, 500);
  EXPECT_GT(tally.copied, 1'000);
  EXPECT_GT(tally.gone_on, 10);
}

}  // namespace
}  // namespace overcap
