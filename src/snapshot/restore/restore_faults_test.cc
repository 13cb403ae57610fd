// SPDX-License-Identifier: Apache-2.0
// Damage, full disks, missing rights, and restores that are cut off.
#include <algorithm>
#include <atomic>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <gtest/gtest.h>
#include <memory>
#include <set>
#include <span>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "snapshot/restore/resume_marker.h"
#include "snapshot/restore/testing/child_run.h"
#include "snapshot/restore/testing/restore_rig.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

namespace fs = std::filesystem;
using Lines = std::vector<std::string>;

std::string Lined(const Lines& lines) {
  return Join(lines, "; ");
}

// A store that calls `before_read` whenever a part of a pack is about to be read.
class WatchedStore : public Store {
 public:
  WatchedStore(Store* store, std::function<void()> before_read)
      : store_(*store), before_read_(std::move(before_read)) {}
  using Store::Put;
  Result<void> Put(const std::string& key, std::span<const std::string_view> pieces, PutMode mode) override {
    return store_.Put(key, pieces, mode);
  }
  Result<void> GetIntoIf(const StoredObjectInfo& object, int64_t offset, int64_t limit,
                         std::string* out) const override {
    if (object.key.starts_with("packs/")) before_read_();
    return store_.GetIntoIf(object, offset, limit, out);
  }
  Result<StoredObjectInfo> Stat(const std::string& key) const override { return store_.Stat(key); }
  Result<StorePage> List(const std::string& prefix, const std::string& next) const override {
    return store_.List(prefix, next);
  }
  Result<void> Remove(const std::string& key) override { return store_.Remove(key); }
  Result<int64_t> CleanUp(int64_t older_than_us) override { return store_.CleanUp(older_than_us); }
  std::string Location() const override { return store_.Location(); }

 private:
  Store& store_;
  std::function<void()> before_read_;
};

class RestoreFaultsTest : public testing::Test {
 protected:
  void PutMany(const std::string& folder, int count, size_t size) {
    for (int i = 0; i < count; ++i) {
      PutFile(rig_.Source(StrCat(folder, "/file ", 1000 + i)), NoiseOf(size, 1000 * count + i));
    }
  }
  Lines DataPacks() {
    Lines keys;
    const Result<std::vector<StoredObjectInfo>> packs = rig_.store().ListAll("packs/");
    for (const StoredObjectInfo& object : *packs) {
      if ((*rig_.store().Get(object.key))[8] == 'd') keys.push_back(object.key);
    }
    return keys;
  }

  RestoreRig rig_;
};

TEST_F(RestoreFaultsTest, ADamagedBlockHarmsOnlyTheFilesInIt) {
  PutMany("many", 40, 100'000);
  PutFile(rig_.Source("large"), NoiseOf(9'000'000, 5));
  const Digest tree = rig_.Save();
  for (const std::string& key : DataPacks()) {
    std::string bytes = *rig_.store().Get(key);
    bytes[bytes.size() / 2] ^= 1;
    ASSERT_TRUE(rig_.store().Put(key, bytes));
  }
  const Result<RestoreReport> report = Restore(rig_.repository(), rig_.Request(tree));
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_GE(report->failed, 1);
  EXPECT_LE(report->failed, 12);
  ASSERT_EQ(static_cast<int64_t>(report->problems.size()), report->failed);
  EXPECT_NE(report->problems[0].what.find("damaged"), std::string::npos) << report->problems[0].what;
  Lines expected;
  for (const RestoreProblem& problem : report->problems)
    expected.push_back(problem.path + ": is missing on the right");
  EXPECT_EQ(rig_.Differences(), expected);
}

TEST_F(RestoreFaultsTest, WhatIsThereIsKeptWhenItsReplacementIsDamaged) {
  PutFile(rig_.Source("file"), NoiseOf(1000, 1));
  const Digest tree = rig_.Save();
  PutFile(rig_.Target("file"), "older, but there");
  for (const std::string& key : DataPacks()) ASSERT_TRUE(rig_.store().Remove(key));
  const Result<RestoreReport> report = Restore(rig_.repository(), rig_.Request(tree));
  ASSERT_TRUE(report);
  EXPECT_EQ(report->failed, 1);
  EXPECT_EQ(Describe(rig_.Target()).at("file"), "file older, but there");
}

// Regular files of a folder that no descriptor of this process leads to.
Lines ClosedFiles(const std::string& folder) {
  std::set<std::string> open;
  for (const auto& fd : fs::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    open.insert(fs::read_symlink(fd.path(), gone).string());
  }
  Lines closed;
  for (const auto& file : fs::directory_iterator(folder)) {
    if (file.is_regular_file() && !open.contains(file.path())) closed.push_back(file.path());
  }
  return closed;
}

// More files than are kept open at once begin with the same chunk, so some are closed before they are
// complete.
TEST_F(RestoreFaultsTest, WhatTakesTheNameOfAFileThatIsHalfRestoredIsNotWrittenInto) {
  constexpr size_t kHalf = 2'000'000, kWhole = 2'500'000;
  const std::string common = NoiseOf(kHalf, 1);
  for (int i = 0; i < 70; ++i)
    PutFile(rig_.Source(StrCat("file ", 100 + i)), common + NoiseOf(kWhole - kHalf, 100 + i));
  RestoreRequest request = rig_.Request(rig_.Save());
  request.threads = 1;
  std::string taken;
  const auto take_one = [&] {
    if (!taken.empty() || !fs::exists(rig_.Target())) return;
    for (const std::string& file : ClosedFiles(rig_.Target())) {
      if (fs::file_size(file) < kWhole) taken = file;
    }
    if (taken.empty()) return;
    PutFile(rig_.Target() + ".mine", "mine");
    fs::rename(rig_.Target() + ".mine", taken);
  };
  const auto repository =
      Repository::Open({std::make_shared<WatchedStore>(&rig_.store(), take_one), &rig_.clock(), nullptr});
  ASSERT_TRUE(repository);
  const RestoreReport report = Restore(*repository, request).value();
  ASSERT_FALSE(taken.empty());
  EXPECT_TRUE(*PosixFiles().Read(taken) == "mine");  // else it is long
  EXPECT_EQ(report.kept, 1);
  EXPECT_EQ(report.failed, 1);
}

TEST_F(RestoreFaultsTest, EverythingElseComesBackWhenAPackIsLost) {
  PutMany("first", 3, 10'000);
  rig_.Save();
  const Lines lost = DataPacks();
  PutMany("second", 5, 20'000);
  const Digest tree = rig_.Save();
  for (const std::string& key : lost) ASSERT_TRUE(rig_.store().Remove(key));
  const Result<RestoreReport> report = Restore(rig_.repository(), rig_.Request(tree));
  ASSERT_TRUE(report);
  EXPECT_EQ(report->failed, 3);
  EXPECT_EQ(Describe(rig_.Target()).size(), 7u);
}

TEST_F(RestoreFaultsTest, ALostPartOfTheListOfFilesHarmsOnlyWhatIsInIt) {
  PutMany("many", 3'000, 10);
  rig_.Save();
  Lines lost;
  const Result<std::vector<StoredObjectInfo>> packs = rig_.store().ListAll("packs/");
  for (const StoredObjectInfo& object : *packs) {
    if ((*rig_.store().Get(object.key))[8] == 'm') lost.push_back(object.key);
  }
  PutFile(rig_.Source("many/0-new"), "new");
  const Digest tree = rig_.Save();
  for (const std::string& key : lost) ASSERT_TRUE(rig_.store().Remove(key));
  PutFile(rig_.Target("extra"), "not in the list that is left");
  RestoreRequest request = rig_.Request(tree, true);
  request.remove_extra = true;
  const Result<RestoreReport> report = Restore(rig_.repository(), request);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_GT(report->files, 0);
  EXPECT_EQ(report->files + report->failed, 3'001 + 1);  // the list of the folder itself is lost too
  const std::map<std::string, std::string> there = Describe(rig_.Target());
  EXPECT_EQ(there.at("many/0-new"), "file new");
  EXPECT_EQ(there.count("extra"), 1u);  // nobody knows that it is one
}

TEST_F(RestoreFaultsTest, AKilledRestoreIsContinuedWithoutReadingWhatItHasWritten) {
  PutMany("many", 200, 40'000);
  PutFile(rig_.Source("large"), NoiseOf(5'000'000, 5));
  const Digest tree = rig_.Save();
  const auto written = [&] {  // a file more or less may be only half done
    int64_t files = 0;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(rig_.Target("many"), none))
      files += entry.file_size() == 40'000;
    return files;
  };
  // How far it is when it reads for the n-th time depends on how fast its threads are.
  for (int reads = 1; reads < 60 && written() < 10; ++reads) {
    const std::string end = RunInChild([&]() -> std::string {
      std::atomic<int> left = reads;
      const auto die = [&left] {
        if (left.fetch_sub(1) == 0) raise(SIGKILL);
      };
      const Result<Repository> repository =
          Repository::Open({std::make_shared<WatchedStore>(&rig_.store(), die), &rig_.clock(), nullptr});
      if (!repository) return repository.error().message;
      (void)Restore(*repository, rig_.Request(tree, true));
      return "it ended";
    });
    if (reads == 1) {
      EXPECT_EQ(end, "died by signal 9");
    }
    EXPECT_TRUE(end == "died by signal 9" || end == "it ended") << end;  // later ones have little left to do
  }
  EXPECT_GE(written(), 10);
  const RestoreReport report = rig_.Restored(rig_.Request(tree, true));
  EXPECT_EQ(rig_.Differences(), Lines{});
  EXPECT_GE(report.same_files, 1);
  EXPECT_EQ(report.same_files + report.written_files, 201);
  EXPECT_FALSE(fs::exists(ResumeMarkerPath(rig_.Target(".overcap/seen"))));
  EXPECT_FALSE(fs::exists(rig_.Target(".overcap/restoring")));
  EXPECT_EQ(rig_.Restored(rig_.Request(tree, true)).written_files, 0);
}

TEST_F(RestoreFaultsTest, AfterARestartOfTheMachineNothingIsTrustedUnread) {
  PutFile(rig_.Source("file"), "right");
  const Digest tree = rig_.Save();
  const RestoreRequest request = rig_.Request(tree, true);
  rig_.Restored(request);
  // The same size, time and mode, but not the bytes: as after a power cut.
  struct stat status;
  ASSERT_EQ(stat(rig_.Target("file").c_str(), &status), 0);
  PutFile(rig_.Target("file"), "wrong");
  SetModeAndTime(rig_.Target("file"), 0644, status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
  const ResumeMarker marker{"another boot", tree, rig_.Target(), 0};
  ASSERT_TRUE(PosixFiles().WriteAtomic(ResumeMarkerPath(request.seen_file), marker.Encode(), false));
  EXPECT_EQ(rig_.Restored(request).written_files, 1);
  EXPECT_EQ(rig_.Differences(), Lines{});
}

TEST_F(RestoreFaultsTest, AFullDiskIsToldBeforeAnythingIsWritten) {
  PutMany("many", 50, 100'000);
  const Digest tree = rig_.Save();
  fs::create_directory(rig_.Target());
  const std::string said = RunInChild([&]() -> std::string {
    if (!MountSmall(rig_.Target(), "3m")) return "NOT TESTED: no small file system to be had";
    RestoreRequest request = rig_.Request(tree);
    request.owners = false;
    const Result<RestoreReport> report = Restore(rig_.repository(), request);
    if (report) return "it fitted";
    return StrCat(ErrorCodeName(report.error().code), " ", report.error().message, " ",
                  fs::is_empty(rig_.Target()) ? "nothing written" : "something written");
  });
  if (said.starts_with("NOT TESTED")) GTEST_SKIP() << said;
  EXPECT_EQ(said, StrCat("unavailable no space is left in '", rig_.Target(),
                         "': 4.8 MiB more are needed, 3.0 MiB are free nothing written"));
}

TEST_F(RestoreFaultsTest, OfFilesInPiecesTheDataCountsAndHolesDoNot) {
  PutFile(rig_.Source("large"), NoiseOf(20'000'000, 70));
  PutFile(rig_.Source("hole"), "x");
  fs::resize_file(rig_.Source("hole"), 1'000'000'000);
  const Digest tree = rig_.Save();
  fs::create_directory(rig_.Target());
  const std::string said = RunInChild([&]() -> std::string {
    if (!MountSmall(rig_.Target(), "8m")) return "NOT TESTED: no small file system to be had";
    RestoreRequest request = rig_.Request(tree);
    request.owners = false;
    const Result<RestoreReport> report = Restore(rig_.repository(), request);
    if (report || !fs::is_empty(rig_.Target())) return "something written";
    if (!ResizeSmall(rig_.Target(), "30m")) return "NOT TESTED: the small file system does not grow";
    const Result<RestoreReport> again = Restore(rig_.repository(), request);
    return StrCat(report.error().message, "; ", again ? "then it fits" : again.error().message);
  });
  if (said.starts_with("NOT TESTED")) GTEST_SKIP() << said;
  EXPECT_EQ(said, StrCat("no space is left in '", rig_.Target(),
                         "': 19.1 MiB more are needed, 8.0 MiB are free; then it fits"));
}

TEST_F(RestoreFaultsTest, ADiskThatFillsUpLeavesWholeFilesAndTheNextRestoreGoesOn) {
  PutFile(rig_.Source("large"), NoiseOf(3'000'000, 70));
  PutMany("many", 3000, 100);  // each needs a whole page: more than the sum of their sizes tells
  const Digest tree = rig_.Save();
  fs::create_directory(rig_.Target());
  const std::string said = RunInChild([&]() -> std::string {
    if (!MountSmall(rig_.Target(), "8m")) return "NOT TESTED: no small file system to be had";
    RestoreRequest request = rig_.Request(tree);
    request.owners = false;
    const Result<RestoreReport> report = Restore(rig_.repository(), request);
    if (report || report.error().code != ErrorCode::kUnavailable)
      return "it did not say that the disk is full";
    TreeComparison how{.owners = false, .times = false};
    for (const std::string& line : CompareTrees(rig_.Source(), rig_.Target(), how)) {
      if (!line.ends_with("is missing on the right") && !line.starts_with(".: ") &&
          !line.starts_with("many: ")) {
        return line;
      }
    }
    if (!ResizeSmall(rig_.Target(), "30m")) return "NOT TESTED: the small file system does not grow";
    const Result<RestoreReport> again = Restore(rig_.repository(), request);
    if (!again) return again.error().message;
    if (again->same_files == 0) return "nothing was kept";
    return Lined(CompareTrees(rig_.Source(), rig_.Target(), {.owners = false}));
  });
  if (said.starts_with("NOT TESTED")) GTEST_SKIP() << said;
  EXPECT_EQ(said, "");
}

TEST_F(RestoreFaultsTest, FoldersWithoutTheRightToWriteAreFilledByTheirOwner) {
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: only root can become somebody else";
  PutFile(rig_.Source("locked/in/file"), "x");
  PutFile(rig_.Source("shut/file"), "y");
  for (const char* name : {"locked/in", "locked"}) ASSERT_EQ(chmod(rig_.Source(name).c_str(), 0555), 0);
  ASSERT_EQ(chmod(rig_.Source("shut").c_str(), 0), 0);
  const Digest tree = rig_.Save();
  PutFile(rig_.Source("locked/in/file"), "other");
  PutFile(rig_.Source("shut/file"), "other");
  const Digest later = rig_.Save();
  ASSERT_EQ(chmod(rig_.temp().Path().c_str(), 0777), 0);
  const std::string said = RunInChild([&]() -> std::string {
    if (setresgid(12345, 12345, 12345) != 0 || setresuid(12345, 12345, 12345) != 0) return "still root";
    RestoreRequest request = rig_.Request(tree);
    request.owners = false;
    for (const Digest& one : {tree, later}) {
      request.tree = one;
      const Result<RestoreReport> report = Restore(rig_.repository(), request);
      if (!report) return report.error().message;
      if (!report->problems.empty()) return report->problems[0].path + ": " + report->problems[0].what;
    }
    return "";
  });
  EXPECT_EQ(said, "");
  EXPECT_EQ(CompareTrees(rig_.Source(), rig_.Target(), {.owners = false}), Lines{});
}

TEST_F(RestoreFaultsTest, WhatIsNotPermittedIsNamedAndTheRestIsRestored) {
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: only root can become somebody else";
  PutFile(rig_.Source("theirs/a"), "x");
  PutFile(rig_.Source("theirs/deep/b"), "x");
  PutFile(rig_.Source("mine/c"), "x");
  const Digest tree = rig_.Save();
  fs::create_directories(rig_.Target("theirs"));
  ASSERT_EQ(chown(rig_.Target().c_str(), 12345, 12345), 0);
  ASSERT_EQ(chmod(rig_.temp().Path().c_str(), 0755), 0);
  const std::string said = RunInChild([&]() -> std::string {
    if (setresgid(12345, 12345, 12345) != 0 || setresuid(12345, 12345, 12345) != 0) return "still root";
    RestoreRequest request = rig_.Request(tree);
    request.owners = false;
    const Result<RestoreReport> report = Restore(rig_.repository(), request);
    if (!report) return report.error().message;
    std::string all;
    for (const RestoreProblem& problem : report->problems) all += problem.path + ": " + problem.what + "\n";
    return all;
  });
  EXPECT_EQ(said,
            "theirs: cannot be given its attributes: operation not permitted\n"
            "theirs/a: cannot be written: permission denied\n"
            "theirs/deep: cannot be made: permission denied\n");
  EXPECT_EQ(Describe(rig_.Target()).at("mine/c"), "file x");
}

}  // namespace
}  // namespace overcap
