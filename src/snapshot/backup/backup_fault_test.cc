// SPDX-License-Identifier: Apache-2.0
// Backups that die, stores that are full or lose things, files that may not be read.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

#include "base/text.h"
#include "snapshot/backup/testing/backup_rig.h"
#include "snapshot/repository/testing/sample_repository.h"
#include "stores/mem/mem_store.h"
#include "stores/testing/fault_store.h"

namespace overcap {
namespace {

using Contents = std::map<std::string, std::string>;

void FirstState(const BackupRig& rig) {
  for (int i = 0; i < 10; ++i)
    rig.Put(StrCat("d", i % 3, "/f", i), TextBytes(static_cast<uint64_t>(i), 3000));
  rig.Put("large", NoiseBytes(1, 200'000));
}

void SecondState(const BackupRig& rig) {
  rig.Put("d1/f1", "changed");
  rig.Put("new/folder/f", TextBytes(99, 20'000));
  rig.Put("large", NoiseBytes(2, 200'000));
  unlink(rig.Path("d2/f2").c_str());
}

TEST(BackupFault, KilledAtAnyChangeOfTheStoreHarmsNothing) {
  for (int64_t n = 1, died = 2; died > 0; ++n) {
    died = 0;
    for (const StoreDeath when : {StoreDeath::kBefore, StoreDeath::kAfter}) {
      const auto disk = std::make_shared<MemStore>();
      const auto faulty = std::make_shared<FaultStore>(disk);
      BackupRig rig(faulty);
      FirstState(rig);
      const BackupReport first = rig.Backup();
      const Contents before = rig.OnDisk();
      SecondState(rig);

      faulty->DieAt(n, when);
      const Result<BackupReport> killed = Backup(rig.repository, rig.Request());
      died += faulty->dead() ? 1 : 0;
      faulty->Revive();

      ASSERT_EQ(rig.Contents(first.tree), before) << n;
      const BackupReport next = rig.Backup();
      ASSERT_EQ(rig.Contents(next.tree), rig.OnDisk()) << n;
      ASSERT_EQ(rig.repository.Find("work", "latest")->record.tree, next.tree) << n;
      ASSERT_FALSE(rig.Backup().snapshot) << n;
      ASSERT_TRUE(!killed || killed->tree == next.tree) << n;
    }
    ASSERT_LT(n, 100);
  }
}

TEST(BackupFault, WhatAKilledBackupStoredServesTheNext) {
  const auto faulty = std::make_shared<FaultStore>(std::make_shared<MemStore>());
  BackupRig rig(faulty);
  FirstState(rig);
  StoreFault fault = StoreFault::Full();
  fault.prefix = "snapshots/";
  faulty->Add(fault);
  ASSERT_FALSE(Backup(rig.repository, rig.Request()));
  faulty->ClearFaults();
  const BackupReport next = rig.Backup();
  ASSERT_TRUE(next.snapshot);
  EXPECT_EQ(next.new_bytes, 0);
  EXPECT_EQ(rig.Contents(next.tree), rig.OnDisk());
}

TEST(BackupFault, AFullStoreIsToldAndLeavesTheOldSnapshot) {
  const auto faulty = std::make_shared<FaultStore>(std::make_shared<MemStore>());
  BackupRig rig(faulty);
  FirstState(rig);
  const BackupReport first = rig.Backup();
  const Contents before = rig.OnDisk();
  SecondState(rig);
  StoreFault fault = StoreFault::Full();
  fault.prefix = "packs/";
  faulty->Add(fault);
  const Result<BackupReport> full = Backup(rig.repository, rig.Request());
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, ErrorCode::kUnavailable);
  faulty->ClearFaults();
  EXPECT_EQ(rig.Contents(first.tree), before);
  EXPECT_EQ(rig.repository.Find("work", "latest")->record.tree, first.tree);
  EXPECT_EQ(rig.Contents(rig.Backup().tree), rig.OnDisk());
}

TEST(BackupFault, AStoreThatMayNotBeWrittenIsDenied) {
  const auto faulty = std::make_shared<FaultStore>(std::make_shared<MemStore>());
  BackupRig rig(faulty);
  FirstState(rig);
  faulty->Add(StoreFault::Denied());
  const Result<BackupReport> denied = Backup(rig.repository, rig.Request());
  ASSERT_FALSE(denied);
  EXPECT_EQ(denied.error().code, ErrorCode::kDenied);
}

TEST(BackupFault, ContentsThatNoSnapshotKeepsAreNotTakenOnTrust) {
  BackupRig rig;
  FirstState(rig);
  const BackupReport first = rig.Backup();
  ASSERT_TRUE(rig.repository.Forget(*first.snapshot));
  for (const std::string& key : KeysOf(*rig.store, "packs/")) ASSERT_TRUE(rig.store->Remove(key));
  const BackupReport second = rig.Backup();
  ASSERT_TRUE(second.snapshot);
  EXPECT_EQ(second.tree, first.tree);
  EXPECT_EQ(second.read_files, 11);
  EXPECT_EQ(rig.Contents(second.tree), rig.OnDisk());
}

TEST(BackupFault, ContentsThatAreStillThereAreNotReadAgain) {
  BackupRig rig;
  FirstState(rig);
  const BackupReport first = rig.Backup();
  ASSERT_TRUE(rig.repository.Forget(*first.snapshot));
  rig.Put("d1/f1", "changed");
  const BackupReport second = rig.Backup();
  ASSERT_TRUE(second.snapshot);
  EXPECT_EQ(second.read_files, 1);
  EXPECT_EQ(rig.Contents(second.tree), rig.OnDisk());
}

// A prune or a merge of indexes drops a lost pack from every index; the map is in another pack.
TEST(BackupFault, ALargeFileWhoseChunksWereLostIsStoredAgainThoughItsMapIsThere) {
  for (const bool change : {false, true}) {
    BackupRig rig;
    rig.Put("small", "small");
    rig.Backup();
    rig.Put("large", NoiseBytes(1, 200'000));
    rig.Backup();
    const auto packs = rig.store->ListAll("packs/").value();
    for (const StoredObjectInfo& pack : packs) {
      if (pack.size > 100'000) {
        ASSERT_TRUE(rig.store->Remove(pack.key));
      }
    }
    for (const std::string& key : KeysOf(*rig.store, "index/")) ASSERT_TRUE(rig.store->Remove(key));
    if (change) rig.Put("other", "other");
    const BackupReport next = rig.Backup();
    EXPECT_EQ(next.read_again, 1) << change;
    EXPECT_EQ(rig.Contents(next.tree), rig.OnDisk()) << change;
    EXPECT_EQ(rig.Backup().read_files, 0) << change;
  }
}

TEST(BackupFault, ADamagedNewestSnapshotIsPassedOver) {
  BackupRig rig;
  FirstState(rig);
  const BackupReport first = rig.Backup();
  const std::string key = first.snapshot->key.Text();
  ASSERT_TRUE(rig.store->Put(key, "nonsense"));
  const BackupReport second = rig.Backup();
  ASSERT_TRUE(second.snapshot);
  EXPECT_EQ(rig.Contents(second.tree), rig.OnDisk());
}

// Runs `act` as a user who is nobody; threads that it starts are nobody too. False when that is not possible.
bool AsNobody(const std::function<void()>& act) {
  if (geteuid() != 0) {
    act();
    return true;
  }
  bool done = false;
  std::thread([&] {
    if (syscall(SYS_setresuid, 65'534, 65'534, 65'534) != 0) return;  // of this thread alone
    done = true;
    act();
  }).join();
  return done;
}

TEST(BackupFault, WhatMayNotBeReadIsNamedAndAllElseIsSaved) {
  BackupRig rig;
  FirstState(rig);
  rig.Put("d1/secret", "x");
  rig.Put("locked/inside", "x");
  rig.Put("listed/inside", "x");
  rig.Put("d2/also", "x");
  chmod(rig.temp.Path().c_str(), 0755);
  chmod(rig.Path("d1/secret").c_str(), 0);
  chmod(rig.Path("d2/also").c_str(), 0);
  chmod(rig.Path("locked").c_str(), 0);
  chmod(rig.Path("listed").c_str(), 0444);
  BackupRequest request = rig.Request();
  request.seen_file = rig.temp / "state/seen";
  mkdir((rig.temp / "state").c_str(), 0777);
  chmod((rig.temp / "state").c_str(), 0777);
  BackupReport first, second;
  const bool ran = AsNobody([&] {
    first = rig.Backup(request);
    second = rig.Backup(request);
  });
  if (!ran) GTEST_SKIP() << "NOT TESTED: cannot become another user";
  std::vector<std::string> named;
  for (const BackupProblem& problem : first.problems) named.push_back(problem.path + ": " + problem.what);
  EXPECT_EQ(named,
            (std::vector<std::string>{"d1/secret: permission denied", "d2/also: permission denied",
                                      "listed/inside: permission denied", "locked: permission denied"}));
  EXPECT_EQ(first.unread, 4);
  EXPECT_EQ(first.snapshot->record.unread, 4);
  Contents expected = rig.OnDisk();
  for (const char* path : {"d1/secret", "d2/also", "locked/inside", "listed/inside"}) expected.erase(path);
  EXPECT_EQ(rig.Contents(first.tree), expected);
  EXPECT_FALSE(second.snapshot);
  EXPECT_EQ(second.unread, 4);

  const BackupReport all = rig.Backup(request);  // as root, who may read all
  EXPECT_EQ(rig.Contents(all.tree), geteuid() == 0 ? rig.OnDisk() : expected);
  chmod(rig.Path("locked").c_str(), 0755);
  chmod(rig.Path("listed").c_str(), 0755);
}

}  // namespace
}  // namespace overcap
