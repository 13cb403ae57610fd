// SPDX-License-Identifier: Apache-2.0
// Backups of several hosts beside prunes, with real threads on one store.
#include <atomic>
#include <gtest/gtest.h>
#include <mutex>
#include <thread>

#include "snapshot/repository/testing/sample_repository.h"
#include "snapshot/repository/upkeep.h"
#include "stores/file/file_store.h"
#include "stores/mem/mem_store.h"
#include "stores/testing/quick_folder.h"

namespace overcap {
namespace {

constexpr int kBackups = 12;

// One host: backups of a folder that changes, forgetting all but the last few.
class Host {
 public:
  Host(std::shared_ptr<Store> store, uint64_t number) : store_(std::move(store)), random_(number) {
    workspace_ = "host" + std::to_string(number);
  }

  void Run() {
    const Repository repository = Repository::Open({.store = store_}).value();
    for (int i = 0; i < kBackups; ++i) {
      files_["f" + std::to_string(random_.Below(6))] = TextBytes(random_.Below(20), 2'000);
      const Result<NamedSnapshot> committed = CommitSample(repository, files_, workspace_, 1'000'000 + i);
      if (!committed) {
        EXPECT_EQ(committed.error().code, ErrorCode::kConflict) << committed.error().message;
        continue;
      }
      kept_.push_back({*committed, files_});
      if (kept_.size() <= 2) continue;
      EXPECT_TRUE(repository.Forget(kept_.front().first));
      kept_.erase(kept_.begin());
    }
  }

  void Check() const {
    const Repository repository = Repository::Open({.store = store_}).value();
    EXPECT_GE(kept_.size(), 1u);
    for (const auto& [snapshot, files] : kept_) {
      EXPECT_EQ(ReadSampleTree(repository, snapshot.record.tree), files);
    }
  }

 private:
  std::shared_ptr<Store> store_;
  SeededRandom random_;
  std::string workspace_;
  SampleFiles files_;
  std::vector<std::pair<NamedSnapshot, SampleFiles>> kept_;
};

void PlayBesidePrunes(const std::function<std::shared_ptr<Store>()>& open) {
  NewRepositoryIn(open());
  std::vector<std::unique_ptr<Host>> hosts;
  for (uint64_t i = 0; i < 3; ++i) hosts.push_back(std::make_unique<Host>(open(), i));
  std::atomic<bool> done = false;
  std::atomic<int64_t> removed = 0;
  std::vector<std::thread> prunes;
  for (int i = 0; i < 2; ++i) {
    prunes.emplace_back([&] {
      const Repository repository = Repository::Open({.store = open()}).value();
      PruneOptions options;
      options.wait_us = 2'000'000;
      options.repack_below = 0.8;
      do {
        const Result<PruneReport> report = Prune(repository, options);
        EXPECT_TRUE(report) << report.error().message;
        if (report) removed += report->removed_packs;
      } while (!done);
    });
  }
  std::vector<std::thread> backups;
  for (const auto& host : hosts) backups.emplace_back([&host] { host->Run(); });
  for (std::thread& thread : backups) thread.join();
  done = true;
  for (std::thread& thread : prunes) thread.join();
  for (const auto& host : hosts) host->Check();
  EXPECT_GT(removed, 0);
}

TEST(Beside, BackupsAndPrunesInMemory) {
  const auto content = std::make_shared<MemStore::Content>();
  PlayBesidePrunes([&] { return std::make_shared<MemStore>("", content); });
}

TEST(Beside, BackupsAndPrunesInAFolder) {
  const QuickFolder folder;
  PlayBesidePrunes([&]() -> std::shared_ptr<Store> { return FileStore::Open(folder.Path(), true).value(); });
}

}  // namespace
}  // namespace overcap
