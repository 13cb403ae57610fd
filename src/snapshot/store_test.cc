// SPDX-License-Identifier: Apache-2.0
#include "snapshot/store.h"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include "snapshot/backup/backup.h"
#include "snapshot/capture.h"
#include "snapshot/materialise.h"
#include "snapshot/repository/chunk_writer.h"
#include "snapshot/repository/testing/sample_repository.h"
#include "snapshot/repository/upkeep.h"
#include "snapshot/testing/sample_folder.h"
#include "stores/all_stores.h"
#include "stores/testing/fault_store.h"

namespace overcap {
namespace {

namespace fs = std::filesystem;
constexpr int64_t kHourUs = int64_t{3600} * 1'000'000;

mode_t ModeOf(const std::string& path) {
  struct stat status;
  return lstat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
}

size_t FilesBelow(const std::string& folder) {
  size_t count = 0;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    count += entry.is_regular_file() ? 1 : 0;
  }
  return count;
}

std::string BlobFile(const SnapshotStore& store, const std::string& id) {
  return store.Folder() + "/blobs/" + id;
}

// "" when all of the tree can be read and is what was stored.
std::string DamageOf(const SnapshotStore& store, const std::string& tree) {
  const TempFolder copies;
  const Result<MaterialiseReport> copied = Materialise(store, tree, copies / "copy", {.use_spare = false});
  return copied ? "" : copied.error().message;
}

TEST(SnapshotStore, GivesBackTheBytesOfABlob) {
  const TempFolder temp;
  const Result<SnapshotStore> store = SnapshotStore::Open(temp / "root/store");
  ASSERT_TRUE(store) << store.error().message;
  const std::string bytes("A=1\0B=\xff\n", 9);
  const Result<std::string> id = store->PutBlob(bytes);
  ASSERT_TRUE(id) << id.error().message;
  EXPECT_EQ(*id, Sha256Of(bytes).Hex());
  EXPECT_EQ(store->GetBlob(*id), bytes);
  EXPECT_EQ(FilesBelow(temp / "root/store/.local/tmp"), 0u);
}

TEST(SnapshotStore, KeepsEverythingPrivate) {
  const TempFolder temp;
  const SnapshotStore store = OpenTestStore(temp);
  const std::string file = BlobFile(store, *store.PutBlob("secret"));
  EXPECT_EQ(ModeOf(file), 0600u);
  EXPECT_EQ(ModeOf(fs::path(file).parent_path()), 0700u);
  EXPECT_EQ(ModeOf(store.Folder()), 0700u);
}

TEST(SnapshotStore, WritesNothingForBytesThatItHas) {
  const TempFolder temp;
  const SnapshotStore store = OpenTestStore(temp);
  const std::string file = BlobFile(store, *store.PutBlob("same"));
  struct stat before;
  struct stat after;
  ASSERT_EQ(lstat(file.c_str(), &before), 0);
  ASSERT_TRUE(store.PutBlob("same"));
  ASSERT_EQ(lstat(file.c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
}

TEST(SnapshotStore, ReplacesAnObjectOfTheWrongSize) {
  const TempFolder temp;
  const SnapshotStore store = OpenTestStore(temp);
  const std::string id = *store.PutBlob("whole");
  ASSERT_EQ(truncate(BlobFile(store, id).c_str(), 2), 0);
  ASSERT_TRUE(store.PutBlob("whole"));
  EXPECT_EQ(store.GetBlob(id), "whole");
}

TEST(SnapshotStore, SaysWhichBlobIsMissingOrDamaged) {
  const TempFolder temp;
  const SnapshotStore store = OpenTestStore(temp);
  EXPECT_EQ(store.GetBlob("nonsense").error().code, ErrorCode::kUsage);
  EXPECT_EQ(store.GetBlob(Sha256Of("never stored").Hex()).error().code, ErrorCode::kNotFound);
  const std::string id = *store.PutBlob("right");
  std::ofstream(BlobFile(store, id)) << "wrong";
  const Result<std::string> blob = store.GetBlob(id);
  ASSERT_FALSE(blob);
  EXPECT_EQ(blob.error().code, ErrorCode::kCorrupt);
  EXPECT_NE(blob.error().message.find(id), std::string::npos);
  ASSERT_TRUE(store.PutBlob("right"));
  EXPECT_EQ(store.GetBlob(id), "right") << "stored again";
}

// A store with two captured folders that share a file, and a blob.
class CollectTest : public testing::Test {
 protected:
  CollectTest() : store_(OpenTestStore(temp_, &clock_)) {
    PutFile(temp_ / "one/shared", "shared");
    PutFile(temp_ / "one/own", "only in one");
    PutFile(temp_ / "two/shared", "shared");
    PutFile(temp_ / "two/own", "only in two");
    one_ = Capture(store_, temp_ / "one")->tree_id;
    two_ = Capture(store_, temp_ / "two")->tree_id;
    blob_ = *store_.PutBlob("environment");
  }

  const TempFolder temp_;
  OffsetClock clock_;
  SnapshotStore store_;
  std::string one_, two_, blob_;
};

TEST_F(CollectTest, RemovesExactlyWhatNoLiveTreeNeeds) {
  const Result<CollectReport> report = store_.Collect({one_}, {}, 0);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->removed, 4) << "the tree of two, its two packs, the blob";
  EXPECT_EQ(report->kept, 3) << "the tree of one and its two packs";
  EXPECT_EQ(DamageOf(store_, one_), "");
  EXPECT_EQ(Materialise(store_, two_, temp_ / "copy").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(store_.GetBlob(blob_).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(FilesBelow(store_.LocalFolder() + "/captures"), 1u);
}

TEST_F(CollectTest, KeepsWhatIsYoungerThanTheMinimumAge) {
  EXPECT_EQ(store_.Collect({}, {}, 2 * kHourUs)->removed, 0);
}

TEST_F(CollectTest, KeepsTheOldPacksOfATreeThatWasUsedAgain) {
  clock_.SetOffset(5 * kHourUs);
  ASSERT_EQ(Capture(store_, temp_ / "one")->tree_id, one_);  // stores nothing, but is about to get a job
  const Result<CollectReport> report = store_.Collect({}, {blob_}, kHourUs);
  EXPECT_EQ(report->removed, 3);
  EXPECT_EQ(DamageOf(store_, one_), "");
  EXPECT_TRUE(store_.GetBlob(blob_));
}

TEST_F(CollectTest, MakesTheNextCaptureStoreAgainWhatItRemoved) {
  ASSERT_EQ(store_.Collect({}, {}, 0)->removed, 7);
  const Result<CaptureReport> again = Capture(store_, temp_ / "one");
  EXPECT_EQ(again->tree_id, one_);
  EXPECT_EQ(again->new_files, 2);
  EXPECT_EQ(DamageOf(store_, one_), "");
}

TEST_F(CollectTest, RemovesWhatCrashesLeftBehind) {
  PutFile(store_.LocalFolder() + "/tmp/index-1", "half");
  PutFile(store_.LocalFolder() + "/tmp/spare-1/x/y", "half");
  PutFile(store_.LocalFolder() + "/spare/another-boot/x-0/y", "unsynced");
  ASSERT_TRUE(store_.Collect({one_, two_}, {blob_}, 0));
  EXPECT_TRUE(fs::is_empty(store_.LocalFolder() + "/tmp"));
  EXPECT_TRUE(fs::is_empty(store_.LocalFolder() + "/spare"));
}

TEST_F(CollectTest, RefusesToGuessWhatADamagedLiveTreeNeeds) {
  for (const std::string& key : KeysOf(store_.repository().store(), "packs/")) {
    fs::resize_file(store_.Folder() + "/" + key, 100);
  }
  const Result<CollectReport> report = store_.Collect({one_}, {}, 0);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(KeysOf(store_.repository().store(), "packs/").size(), 4u) << "no pack may be removed";
}

TEST_F(CollectTest, NamesLiveTreesThatAreGone) {
  const std::string id = Sha256Of("gone").Hex();
  EXPECT_EQ(store_.Collect({id, one_, two_}, {blob_}, 0)->missing_trees, std::vector<std::string>{id});
}

TEST_F(CollectTest, WaitsForCapturesOnlySoLong) {
  const Result<Fd> capture = store_.LockShared();
  ASSERT_TRUE(capture);
  EXPECT_EQ(store_.Collect({}, {}, 0).error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(store_.PutBlob("captures do not hinder each other"));
}

BackupRequest BackupOf(const std::string& folder) {
  BackupRequest request;
  request.folder = folder;
  request.workspace = "work";
  return request;
}

TEST_F(CollectTest, CodeAndWorkspacesShareChunksAndKeepThemForEachOther) {
  PutFile(temp_ / "one/large", NoiseBytes(1, 1'000'000));
  const Result<CaptureReport> code = Capture(store_, temp_ / "one");
  const Result<BackupReport> backup = Backup(store_.repository(), BackupOf(temp_ / "one"));
  ASSERT_TRUE(backup) << backup.error().message;
  EXPECT_LT(backup->new_bytes, 10'000) << "its pages alone are new";
  ASSERT_TRUE(store_.Collect({}, {}, 0)) << "the code goes, the snapshot stays";
  const Result<CaptureReport> again = Capture(store_, temp_ / "one");
  EXPECT_EQ(again->tree_id, code->tree_id);
  EXPECT_EQ(again->new_files, 0);
  ASSERT_TRUE(store_.repository().Forget(*backup->snapshot));
  ASSERT_TRUE(Prune(store_.repository(), {})) << "of workspaces alone: it knows of code all the same";
  EXPECT_EQ(DamageOf(store_, code->tree_id), "");
}

// A backup that began before the collection relies on packs that the collection would remove.
TEST_F(CollectTest, LeavesPacksThatABackupMayRelyOnForTheNextTime) {
  Result<std::unique_ptr<ChunkWriter>> backup = ChunkWriter::Start(store_.repository());
  ASSERT_TRUE(backup);
  const auto added = [&] { return (*backup)->NewLane()->Add(ChunkKind::kData, "only in one"); }();
  ASSERT_TRUE(added);
  EXPECT_FALSE(added->is_new);
  const Result<CollectReport> report = store_.Collect({two_}, {blob_}, 0);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->removed, 1) << "the tree of one";
  EXPECT_GT(report->waiting, 0);
  EXPECT_TRUE((*backup)->Has(Sha256Of("only in one")).value_or(false));
  backup->reset();
  const Result<CollectReport> next = store_.Collect({two_}, {blob_}, 0);
  EXPECT_EQ(next->waiting, 0);
  EXPECT_GT(next->removed, 0);
  EXPECT_EQ(DamageOf(store_, two_), "");
}

// What a capture has taken over from an earlier one must not go while it stores the rest.
TEST_F(CollectTest, GoesOnBesideCapturesAndBackups) {
  std::atomic<bool> stop = false;
  std::thread collector([&] {
    while (!stop) {
      const Result<CollectReport> report = store_.Collect({one_, two_}, {blob_}, 0);
      EXPECT_TRUE(report || report.error().code == ErrorCode::kUnavailable) << report.error().message;
    }
  });
  for (int i = 0; i < 15; ++i) {
    PutFile(temp_ / "three/same", "same");
    PutFile(temp_ / "three/other", std::to_string(i));
    const Result<Fd> lock = store_.LockShared();  // as a submit that has no job yet
    if (!lock) continue;
    const Result<CaptureReport> report = Capture(store_, temp_ / "three");
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(DamageOf(store_, report->tree_id), "");
    const Result<BackupReport> backup = Backup(store_.repository(), BackupOf(temp_ / "three"));
    EXPECT_TRUE(backup || backup.error().code == ErrorCode::kConflict) << backup.error().message;
  }
  stop = true;
  collector.join();
  EXPECT_EQ(DamageOf(store_, one_), "");
  EXPECT_EQ(DamageOf(store_, two_), "");
}

// Kill -9 at every change of the repository: earlier code is whole, the same capture works the next time, and
// what was left behind can be collected.
TEST_F(CollectTest, SurvivesDeathAtEveryWriteOfACapture) {
  PutFile(temp_ / "more/a", "a");
  PutFile(temp_ / "more/shared", "shared");
  const std::shared_ptr<Store> disk = *OpenStore(store_.Folder(), false);
  bool died = true;
  for (int64_t n = 1; died; ++n) {
    died = false;
    for (const StoreDeath when : {StoreDeath::kBefore, StoreDeath::kAfter}) {
      auto faulty = std::make_shared<FaultStore>(disk);
      {
        const Result<SnapshotStore> store = SnapshotStore::Open(
            store_.Folder(), {.clock = &clock_, .lock_timeout_ms = 100, .objects = faulty});
        ASSERT_TRUE(store);
        faulty->DieAt(n, when);
        (void)Capture(*store, temp_ / "more");
      }
      died = died || faulty->dead();
      EXPECT_EQ(DamageOf(store_, one_), "") << n;
      const Result<CaptureReport> next = Capture(store_, temp_ / "more");
      ASSERT_TRUE(next) << n << ": " << next.error().message;
      EXPECT_EQ(DamageOf(store_, next->tree_id), "") << n;
      for (const std::string& left : KeysOf(*disk, "writers/")) ASSERT_TRUE(disk->Remove(left));
      ASSERT_TRUE(store_.Collect({one_, two_}, {blob_}, 0));
      EXPECT_EQ(KeysOf(*disk, "code/").size(), 2u);
      EXPECT_EQ(KeysOf(*disk, "condemned/").size(), 0u);
    }
  }
}

TEST_F(CollectTest, SurvivesDeathAtEveryWriteOfACollection) {
  const std::shared_ptr<Store> disk = *OpenStore(store_.Folder(), false);
  bool died = true;
  for (int64_t n = 1; died; ++n) {
    died = false;
    for (const StoreDeath when : {StoreDeath::kBefore, StoreDeath::kAfter}) {
      ASSERT_EQ(Capture(store_, temp_ / "two")->tree_id, two_);
      auto faulty = std::make_shared<FaultStore>(disk);
      {
        const Result<SnapshotStore> store = SnapshotStore::Open(
            store_.Folder(), {.clock = &clock_, .lock_timeout_ms = 100, .objects = faulty});
        ASSERT_TRUE(store);
        faulty->DieAt(n, when);
        (void)store->Collect({one_}, {}, 0);
      }
      died = died || faulty->dead();
      for (const std::string& left : KeysOf(*disk, "writers/")) ASSERT_TRUE(disk->Remove(left));
      EXPECT_EQ(DamageOf(store_, one_), "") << n;
      ASSERT_EQ(Capture(store_, temp_ / "two")->tree_id, two_) << n;
      EXPECT_EQ(DamageOf(store_, two_), "") << n;
      ASSERT_TRUE(store_.Collect({one_}, {}, 0));
      EXPECT_EQ(KeysOf(*disk, "packs/").size(), 2u);
      EXPECT_EQ(KeysOf(*disk, "condemned/").size(), 0u);
    }
  }
}

// A file system of 1 MiB.
class TinyDisk {
 public:
  explicit TinyDisk(const std::string& path) : path_(path) {
    fs::create_directories(path);
    mounted_ = mount("tmpfs", path.c_str(), "tmpfs", 0, "size=1m") == 0;
  }
  ~TinyDisk() {
    if (mounted_) (void)umount2(path_.c_str(), MNT_DETACH);
  }
  bool Mounted() const { return mounted_; }

 private:
  std::string path_;
  bool mounted_ = false;
};

TEST(FullDisk, IsAClearErrorAndLeavesNothingBehind) {
  const TempFolder temp;
  const TinyDisk disk(temp / "disk");
  if (!disk.Mounted()) GTEST_SKIP() << "may not mount a tmpfs: cannot fill a disk";
  const Result<SnapshotStore> store = SnapshotStore::Open(temp / "disk/root/store");
  ASSERT_TRUE(store);
  PutFile(temp / "big/small", "fits");
  const std::string fits = Capture(*store, temp / "big")->tree_id;
  PutFile(temp / "big/huge", NoiseBytes(1, 3 << 20));
  for (int i = 0; i < 200; ++i)
    PutFile(temp / ("big/" + std::to_string(i)), std::string(8000, 'a') + std::to_string(i));
  const Result<CaptureReport> report = Capture(*store, temp / "big");
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(report.error().message.find("No space left"), std::string::npos) << report.error().message;
  EXPECT_NE(report.error().hint, "");
  EXPECT_EQ(FilesBelow(store->LocalFolder() + "/tmp"), 0u);
  EXPECT_EQ(DamageOf(*store, fits), "");
}

TEST(FullDisk, MaterialiseFailsWithoutATrace) {
  const TempFolder temp;
  const TinyDisk disk(temp / "disk");
  if (!disk.Mounted()) GTEST_SKIP() << "may not mount a tmpfs: cannot fill a disk";
  const SnapshotStore store = OpenTestStore(temp);
  PutFile(temp / "big/huge", std::string(3 << 20, 'x'));
  const std::string tree = Capture(store, temp / "big")->tree_id;
  const Result<MaterialiseReport> report = Materialise(store, tree, temp / "disk/code");
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::kUnavailable) << report.error().message;
  EXPECT_TRUE(fs::is_empty(temp / "disk"));
}

}  // namespace
}  // namespace overcap
