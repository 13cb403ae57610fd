// SPDX-License-Identifier: Apache-2.0
// What a restore leaves in the cache serves the next backup, restore and comparison.
#include <filesystem>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "snapshot/backup/seen.h"
#include "snapshot/restore/testing/restore_rig.h"

namespace overcap {
namespace {

namespace fs = std::filesystem;
using Lines = std::vector<std::string>;

class RestoreSeenTest : public testing::Test {
 protected:
  RestoreSeenTest() {
    PutFile(rig_.Source("a/b/file"), "content");
    PutFile(rig_.Source("large"), NoiseOf(700'000, 1));
    PutFile(rig_.Source("empty"), "");
    fs::create_symlink("a/b/file", rig_.Source("link"));
    fs::create_hard_link(rig_.Source("large"), rig_.Source("a/large too"));
    tree_ = rig_.Save();
  }
  BackupReport BackupTarget() {
    BackupRequest request;
    request.folder = rig_.Target();
    request.workspace = "w";
    request.seen_file = rig_.Target(".overcap/seen");
    Result<BackupReport> report = Backup(rig_.repository(), request);
    EXPECT_TRUE(report) << report.error().message;
    return report ? std::move(*report) : BackupReport{};
  }
  CompareReport Compare(bool with_seen = true) {
    CompareRequest request;
    request.tree = tree_;
    request.folder = rig_.Target();
    if (with_seen) request.seen_file = rig_.Target(".overcap/seen");
    Result<CompareReport> report = CompareFolder(rig_.repository(), request);
    EXPECT_TRUE(report) << report.error().message;
    return report ? std::move(*report) : CompareReport{};
  }
  static Lines Text(const CompareReport& report) {
    Lines lines;
    for (const FolderDifference& one : report.differences) lines.push_back(one.what + (" " + one.path));
    return lines;
  }
  // Changes the bytes of a file, but nothing that stat tells except its ctime.
  static void ChangeUnderItsTime(const std::string& path, const std::string& content) {
    struct stat status;
    ASSERT_EQ(stat(path.c_str(), &status), 0);
    PutFile(path, content);
    SetModeAndTime(path, status.st_mode & 07777, status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
  }

  RestoreRig rig_;  // its clock is an hour ahead: nothing is racily clean
  Digest tree_;
};

TEST_F(RestoreSeenTest, TheNextBackupReadsNothingAndFindsTheSameTree) {
  rig_.Restored(rig_.Request(tree_, true));
  const BackupReport report = BackupTarget();
  EXPECT_EQ(report.read_files, 0);
  EXPECT_EQ(report.tree, tree_);
  EXPECT_FALSE(report.snapshot);
}

TEST_F(RestoreSeenTest, WhatChangesLaterIsReadByTheNextBackup) {
  rig_.Restored(rig_.Request(tree_, true));
  PutFile(rig_.Target("a/b/file"), "changed");
  PutFile(rig_.Target("new"), "new");
  fs::remove(rig_.Target("empty"));
  const BackupReport report = BackupTarget();
  EXPECT_EQ(report.read_files, 2);
  EXPECT_NE(report.tree, tree_);
}

TEST_F(RestoreSeenTest, AFileThatIsMissingIsMissedByTheNextBackup) {
  RestoreRequest request = rig_.Request(tree_, true);
  fs::create_directories(rig_.Target("empty/in the way"));
  const Result<RestoreReport> restored = Restore(rig_.repository(), request);
  ASSERT_TRUE(restored);
  EXPECT_EQ(restored->failed, 1);
  fs::remove_all(rig_.Target("empty"));
  EXPECT_NE(BackupTarget().tree, tree_);
}

TEST_F(RestoreSeenTest, TheNextRestoreReadsNothing) {
  rig_.Restored(rig_.Request(tree_, true));
  // With its old ctime the cache would call this file right: so it is never read when the stamp is the same.
  ChangeUnderItsTime(rig_.Target("a/b/file"), "changed");
  const RestoreReport report = rig_.Restored(rig_.Request(tree_, true));
  EXPECT_EQ(report.written_files, 1);
  EXPECT_EQ(report.same_files, 2);
  EXPECT_EQ(rig_.Differences(), Lines{});
}

TEST_F(RestoreSeenTest, WhatMayBeRacilyCleanIsReadAndNotWritten) {
  rig_.clock().SetOffset(0);
  rig_.Restored(rig_.Request(tree_, true));
  const std::optional<Seen> seen = Seen::Load(rig_.Target(".overcap/seen"), rig_.repository().config().id,
                                              fs::canonical(rig_.Target()).string());
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->tree(), tree_);
  EXPECT_EQ(rig_.Restored(rig_.Request(tree_, true)).written_files, 0);
}

TEST_F(RestoreSeenTest, ASecondRestoreOfALaterTreeWritesOnlyWhatDiffers) {
  rig_.Restored(rig_.Request(tree_, true));
  PutFile(rig_.Source("a/b/file"), "content of later");
  PutFile(rig_.Source("new/file"), "new");
  fs::remove(rig_.Source("empty"));
  tree_ = rig_.Save();
  RestoreRequest request = rig_.Request(tree_, true);
  request.remove_extra = true;
  const RestoreReport report = rig_.Restored(request);
  EXPECT_EQ(report.written_files, 2);
  EXPECT_EQ(report.removed, 1);
  EXPECT_EQ(rig_.Differences(), Lines{});
  EXPECT_EQ(BackupTarget().read_files, 0);
}

TEST_F(RestoreSeenTest, ExtrasAreFoundByTheCacheAndWithoutIt) {
  rig_.Restored(rig_.Request(tree_, true));
  PutFile(rig_.Target("a/extra"), "x");
  PutFile(rig_.Target("z/extra"), "x");
  BackupTarget();
  EXPECT_EQ(Text(Compare()), (Lines{"+ a/extra", "+ z", "+ z/extra"}));
  PutFile(rig_.Target("a/b/extra"), "x");
  RestoreRequest request = rig_.Request(tree_, true);
  rig_.Restored(request);  // leaves them, and must not forget them
  request.remove_extra = true;
  EXPECT_EQ(rig_.Restored(request).removed, 4);
  EXPECT_EQ(rig_.Differences(), Lines{});
  EXPECT_EQ(BackupTarget().tree, tree_);
}

TEST_F(RestoreSeenTest, APartialRestoreLeavesTheCacheAlone) {
  rig_.Restored(rig_.Request(tree_, true));
  fs::remove(rig_.Target("a/b/file"));
  RestoreRequest request = rig_.Request(tree_, true);
  request.paths = {"a/b"};
  rig_.Restored(request);
  EXPECT_EQ(rig_.Differences(), Lines{});
  const BackupReport report = BackupTarget();
  EXPECT_EQ(report.read_files, 1);
  EXPECT_EQ(report.tree, tree_);
}

TEST_F(RestoreSeenTest, ComparingTellsWhatIsNewGoneAndChanged) {
  rig_.Restored(rig_.Request(tree_, true));
  EXPECT_TRUE(Compare().Same());
  EXPECT_TRUE(Compare(false).Same());
  ChangeUnderItsTime(rig_.Target("a/b/file"), "changed");
  PutFile(rig_.Target("z/new"), "new");
  fs::remove(rig_.Target("empty"));
  ASSERT_EQ(chmod(rig_.Target("a").c_str(), 0700), 0);
  const Lines expected = {"~ a", "~ a/b/file", "- empty", "+ z", "+ z/new"};
  EXPECT_EQ(Text(Compare()), expected);
  EXPECT_EQ(Text(Compare(false)), expected);
  struct stat status;
  ASSERT_EQ(stat(rig_.Target("z/new").c_str(), &status), 0);
  EXPECT_EQ(Compare().newest_mtime_ns, status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec);
}

TEST_F(RestoreSeenTest, ComparingDoesNotMindTimesAndWhatIsExcluded) {
  rig_.Restored(rig_.Request(tree_, true));
  SetModeAndTime(rig_.Target("empty"), 0644, 1, 1);
  SetModeAndTime(rig_.Target("a"), 0755, 1, 1);
  PutFile(rig_.Target("a/data.ckpt"), "x");
  ASSERT_EQ(mkfifo(rig_.Target("a/pipe").c_str(), 0600), 0);  // no snapshot could have it
  CompareRequest request;
  request.tree = tree_;
  request.folder = rig_.Target();
  request.exclude = {"*.ckpt"};
  const Result<CompareReport> report = CompareFolder(rig_.repository(), request);
  ASSERT_TRUE(report);
  EXPECT_EQ(Text(*report), Lines{});
  request.folder = rig_.temp() / "nothing";
  EXPECT_EQ(CompareFolder(rig_.repository(), request).error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace overcap
