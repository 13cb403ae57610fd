// SPDX-License-Identifier: Apache-2.0
#include "snapshot/store.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include "snapshot/capture.h"
#include "snapshot/materialise.h"
#include "snapshot/object_batch.h"
#include "snapshot/testing/sample_folder.h"

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

TEST(SnapshotStore, GivesBackTheBytesOfABlob) {
  const TempFolder temp;
  const Result<SnapshotStore> store = SnapshotStore::Open(temp / "root/store");  // durable: the real thing
  ASSERT_TRUE(store) << store.error().message;
  const std::string bytes("A=1\0B=\xff\n", 9);
  const Result<std::string> id = store->PutBlob(bytes);
  ASSERT_TRUE(id) << id.error().message;
  EXPECT_EQ(*id, Sha256Of(bytes).Hex());
  EXPECT_EQ(store->GetBlob(*id), bytes);
  EXPECT_EQ(FilesBelow(temp / "root/store/tmp"), 0u);
}

TEST(SnapshotStore, KeepsEverythingPrivate) {
  const TempFolder temp;
  const SnapshotStore store = OpenTestStore(temp);
  const std::string file = StoredFile(store, ObjectKind::kContent, *store.PutBlob("secret"));
  EXPECT_EQ(ModeOf(file), 0600u);
  EXPECT_EQ(ModeOf(fs::path(file).parent_path()), 0700u);
  EXPECT_EQ(ModeOf(store.Folder()), 0700u);
}

TEST(SnapshotStore, WritesNothingForBytesThatItHas) {
  const TempFolder temp;
  const SnapshotStore store = OpenTestStore(temp);
  const std::string file = StoredFile(store, ObjectKind::kContent, *store.PutBlob("same"));
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
  ASSERT_EQ(truncate(StoredFile(store, ObjectKind::kContent, id).c_str(), 2), 0);
  ASSERT_TRUE(store.PutBlob("whole"));
  EXPECT_EQ(store.GetBlob(id), "whole");
}

TEST(SnapshotStore, SaysWhichBlobIsMissingOrDamaged) {
  const TempFolder temp;
  const SnapshotStore store = OpenTestStore(temp);
  EXPECT_EQ(store.GetBlob("nonsense").error().code, ErrorCode::kUsage);
  EXPECT_EQ(store.GetBlob(Sha256Of("never stored").Hex()).error().code, ErrorCode::kNotFound);
  const std::string id = *store.PutBlob("right");
  std::ofstream(StoredFile(store, ObjectKind::kContent, id)) << "wrong";
  const Result<std::string> blob = store.GetBlob(id);
  ASSERT_FALSE(blob);
  EXPECT_EQ(blob.error().code, ErrorCode::kCorrupt);
  EXPECT_NE(blob.error().message.find(id), std::string::npos);
  ASSERT_TRUE(store.PutBlob("right"));
  EXPECT_EQ(store.GetBlob(id), "right") << "stored again";
}

TEST(ObjectBatch, LeavesNothingWhenItIsNotCommitted) {
  const TempFolder temp;
  const SnapshotStore store = OpenTestStore(temp);
  {
    ObjectBatch batch(store);
    ASSERT_TRUE(batch.AddBytes("x", ObjectKind::kContent));
    EXPECT_EQ(FilesBelow(store.Folder() + "/tmp"), 1u);
  }
  EXPECT_EQ(FilesBelow(store.Folder() + "/tmp"), 0u);
  EXPECT_EQ(FilesBelow(store.Folder() + "/objects"), 0u);
}

TEST(ObjectBatch, StoresTheSameBytesOnceFromManyThreads) {
  const TempFolder temp;
  const SnapshotStore store = OpenTestStore(temp);
  ObjectBatch batch(store);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) EXPECT_TRUE(batch.AddBytes(std::to_string(i % 10), ObjectKind::kContent));
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(batch.Commit());
  EXPECT_EQ(FilesBelow(store.Folder() + "/objects"), 10u);
  EXPECT_EQ(FilesBelow(store.Folder() + "/tmp"), 0u);
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
  EXPECT_EQ(report->removed, 3);  // tree two, its own file, the blob
  EXPECT_EQ(report->kept, 3);
  EXPECT_TRUE(store_.Verify(one_)->damage.empty());
  EXPECT_EQ(store_.ReadTree(two_).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(store_.GetBlob(blob_).error().code, ErrorCode::kNotFound);
}

TEST_F(CollectTest, KeepsWhatIsYoungerThanTheMinimumAge) {
  EXPECT_EQ(store_.Collect({}, {}, 2 * kHourUs)->removed, 0);
}

TEST_F(CollectTest, KeepsTheOldObjectsOfATreeThatWasUsedAgain) {
  clock_.SetOffset(5 * kHourUs);
  ASSERT_EQ(Capture(store_, temp_ / "one")->tree_id, one_);  // stores nothing, but is about to get a job
  const Result<CollectReport> report = store_.Collect({}, {blob_}, kHourUs);
  EXPECT_EQ(report->removed, 2);
  EXPECT_TRUE(store_.Verify(one_)->damage.empty());
  EXPECT_TRUE(store_.GetBlob(blob_));
}

TEST_F(CollectTest, MakesTheNextCaptureStoreAgainWhatItRemoved) {
  ASSERT_EQ(store_.Collect({}, {}, 0)->removed, 6);
  const Result<CaptureReport> again = Capture(store_, temp_ / "one");
  EXPECT_EQ(again->tree_id, one_);
  EXPECT_EQ(again->new_files, 2);
  EXPECT_TRUE(store_.Verify(one_)->damage.empty());
}

TEST_F(CollectTest, RemovesWhatCrashesLeftBehind) {
  PutFile(store_.Folder() + "/tmp/object-1", "half");
  PutFile(store_.Folder() + "/tmp/spare-1/x/y", "half");
  PutFile(store_.Folder() + "/spare/another-boot/x-0/y", "unsynced");
  ASSERT_TRUE(store_.Collect({one_, two_}, {blob_}, 0));
  EXPECT_TRUE(fs::is_empty(store_.Folder() + "/tmp"));
  EXPECT_TRUE(fs::is_empty(store_.Folder() + "/spare"));
}

TEST_F(CollectTest, RefusesToGuessWhatADamagedLiveTreeNeeds) {
  std::ofstream(StoredFile(store_, ObjectKind::kTree, one_)) << "garbage";
  const Result<CollectReport> report = store_.Collect({one_}, {}, 0);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::kCorrupt);
  EXPECT_TRUE(store_.GetBlob(blob_)) << "nothing may be removed";
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

TEST_F(CollectTest, UsageCountsWhatIsThere) {
  ASSERT_TRUE(PrepareSpare(store_, one_));
  const Result<StoreUsage> usage = store_.Usage();
  EXPECT_EQ(usage->objects, 4);
  EXPECT_EQ(usage->object_bytes, 6 + 11 + 11 + 11);
  EXPECT_EQ(usage->trees, 2);
  EXPECT_EQ(usage->spares, 1);
}

TEST_F(CollectTest, VerifyNamesPathAndObjectOfWhatChanged) {
  const std::string id = Sha256Of("shared").Hex();
  std::ofstream(StoredFile(store_, ObjectKind::kContent, id)) << "SHARED";
  const Result<VerifyReport> report = store_.Verify(two_);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->damage, std::vector<std::string>{"'shared': object '" + id + "' has another content"});
  fs::remove(StoredFile(store_, ObjectKind::kContent, id));
  EXPECT_EQ(store_.Verify(two_)->damage,
            std::vector<std::string>{"'shared': object '" + id + "' is missing or cannot be read"});
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
  PutFile(temp / "big/huge", std::string(3 << 20, 'x'));
  for (int i = 0; i < 200; ++i)
    PutFile(temp / ("big/" + std::to_string(i)), std::string(8000, 'a') + std::to_string(i));
  const Result<CaptureReport> report = Capture(*store, temp / "big");
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(report.error().message.find("No space left"), std::string::npos) << report.error().message;
  EXPECT_NE(report.error().hint, "");
  EXPECT_EQ(FilesBelow(store->Folder() + "/tmp"), 0u);
  EXPECT_TRUE(store->Verify(fits)->damage.empty());
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
