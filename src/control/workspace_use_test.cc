// SPDX-License-Identifier: Apache-2.0
// Workspaces from their making to their end, with a repository in memory.
#include <ctime>
#include <functional>
#include <gtest/gtest.h>
#include <mutex>
#include <utility>

#include "base/text.h"
#include "control/workspace_backup.h"
#include "control/workspace_contents.h"
#include "control/workspace_create.h"
#include "control/workspace_look.h"
#include "control/workspace_prune.h"
#include "control/workspace_restore.h"
#include "sys/posix_files.h"
#include "sys/testing/temp_folder.h"

namespace overcap {
namespace {

class WorkspaceUse : public testing::Test {
 protected:
  WorkspaceUse() {
    world_.roots = {temp_ / "root"};
    world_.user = "ann";
    world_.host = "node1";
    world_.variables = Variables::OfThisProcess();
    world_.clock = &clock_;
    world_.random = &random_;
    request_.name = "work";
    request_.at = temp_ / "disk/work";
    request_.store = StrCat("mem:", temp_.Path().substr(1));
  }

  void Write(const std::string& name, std::string_view text) {
    ASSERT_TRUE(files_.MakeFolders(Folder()));
    ASSERT_TRUE(files_.WriteAtomic(Folder() + "/" + name, text, false));
  }
  std::string Read(const std::string& name) { return files_.Read(Folder() + "/" + name).value_or("(none)"); }
  std::string Folder() { return temp_ / "disk/work"; }
  FoundWorkspace Found() { return FindWorkspace(world_, "work").value(); }
  Repository Open() { return OpenRepositoryOf(world_, Found().workspace).value(); }
  Result<WorkspaceBackup> BackUp() {
    OC_TRY(found, FindWorkspaceHere(world_, "work"));
    return BackUpWorkspace(world_, found, Open(), {});
  }
  Result<WorkspaceInit> Init(const WorkspaceRestoreOptions& options = {}) {
    return InitWorkspace(world_, Found(), Open(), "", options);
  }

  TempFolder temp_;
  PosixFiles files_;
  PosixClock clock_;
  KernelRandom random_;
  WorkspaceWorld world_;
  WorkspaceCreateRequest request_;
};

TEST_F(WorkspaceUse, WhatWasSavedComesBackWhereTheFolderIsGone) {
  ASSERT_TRUE(CreateWorkspace(world_, request_));
  Write("a", "1");
  const auto saved = BackUp();
  ASSERT_TRUE(saved) << saved.error().message;
  ASSERT_TRUE(saved->report.snapshot);
  EXPECT_FALSE(BackUp()->report.snapshot);
  ASSERT_TRUE(files_.RemoveTree(Folder()));
  const auto init = Init();
  ASSERT_TRUE(init) << init.error().message;
  EXPECT_EQ(init->outcome, InitOutcome::kRestored);
  EXPECT_EQ(Read("a"), "1");
  EXPECT_EQ(Init()->outcome, InitOutcome::kHasNewest);
}

TEST_F(WorkspaceUse, ARestoreThatWasStoppedGoesOnAndIsNotSavedBefore) {
  ASSERT_TRUE(CreateWorkspace(world_, request_));
  Write("a", "1");
  ASSERT_TRUE(BackUp());
  ASSERT_TRUE(files_.RemoveTree(Folder()));
  const std::atomic<bool> stop{true};
  ASSERT_FALSE(Init({false, {}, &stop}));
  EXPECT_EQ(BackUp().error().code, ErrorCode::kConflict);
  ASSERT_TRUE(Init());
  EXPECT_EQ(Read("a"), "1");
  EXPECT_TRUE(BackUp());
}

TEST_F(WorkspaceUse, WhatWasWrittenWhileARestoreWasCutOffIsNotLost) {
  ASSERT_TRUE(CreateWorkspace(world_, request_));
  Write("a", "1");
  ASSERT_TRUE(BackUp());
  ASSERT_TRUE(files_.RemoveTree(Folder()));
  const std::atomic<bool> stop{true};
  ASSERT_FALSE(Init({false, {}, &stop}));
  Write("a", "mine");
  const auto gone_on = Init();
  ASSERT_TRUE(gone_on) << gone_on.error().message;
  EXPECT_EQ(gone_on->report.kept, 1);
  EXPECT_EQ(gone_on->report.failed, 1);
  EXPECT_EQ(Read("a"), "mine");
  ASSERT_TRUE(BackUp());
  const auto old = Open().Find("work", "latest~1");
  ASSERT_TRUE(old);
  ASSERT_TRUE(RestoreInPlace(world_, Found(), Open(), *old, {}, {}));
  EXPECT_EQ(Read("a"), "1");
}

TEST_F(WorkspaceUse, WhatChangesWhileARestoreGoesOnIsKeptAndNamed) {
  ASSERT_TRUE(CreateWorkspace(world_, request_));
  ASSERT_TRUE(files_.MakeFolders(Folder() + "/gone/deep"));
  for (int i = 0; i < 50; ++i) {
    Write(StrCat("file", i), "1");
    Write(StrCat("gone/deep/", i), "1");
  }
  ASSERT_TRUE(BackUp());
  const auto first = Open().Find("work", "latest");
  for (int i = 0; i < 50; ++i) Write(StrCat("file", i), "two");
  Write("new", "two");
  ASSERT_TRUE(files_.RemoveTree(Folder() + "/gone"));
  ASSERT_TRUE(BackUp());
  const auto second = Open().Find("work", "latest");
  ASSERT_TRUE(first && second);
  ASSERT_TRUE(RestoreInPlace(world_, Found(), Open(), *first, {}, {}));

  // The first call comes when one file is there: all others are still to be replaced, made or removed.
  std::once_flag once;
  WorkspaceRestoreOptions options;
  options.progress = [&](const RestoreProgress&) {
    std::call_once(once, [&] {
      for (int i = 0; i < 50; ++i) Write(StrCat("file", i), "mine");
      Write("new", "mine");
      ASSERT_TRUE(files_.MakeFolders(Folder() + "/gone/deep"));
      Write("gone/deep/mine", "mine");
    });
  };
  const auto report = RestoreInPlace(world_, Found(), Open(), *second, {}, options);
  ASSERT_TRUE(report) << report.error().message;
  for (int i = 0; i < 50; ++i) EXPECT_EQ(Read(StrCat("file", i)), "mine") << i;
  EXPECT_EQ(Read("gone/deep/mine"), "mine");
  EXPECT_EQ(Read("new"), "mine");
  EXPECT_GE(report->kept, 48);
  EXPECT_EQ(report->failed, report->kept);
  ASSERT_TRUE(BackUp());
  EXPECT_TRUE(LookAtWorkspace(Found(), Open())->changes->Same());
}

// By which everything takes long.
class RacingClock : public Clock {
 public:
  int64_t WallUs() const override { return PosixClock().WallUs(); }
  int64_t MonotonicUs() const override { return PosixClock().MonotonicUs() * 1'000'000; }
};

TEST_F(WorkspaceUse, WhatIsMadeDuringALongRestoreIsInTheNextBackup) {
  const RacingClock clock;
  world_.clock = &clock;
  ASSERT_TRUE(CreateWorkspace(world_, request_));
  ASSERT_TRUE(files_.MakeFolders(Folder() + "/deep/er"));
  for (int i = 0; i < 20; ++i) Write(StrCat("deep/er/", i), "1");
  ASSERT_TRUE(BackUp());
  ASSERT_TRUE(files_.RemoveTree(Folder()));
  std::once_flag once;
  WorkspaceRestoreOptions options;
  options.progress = [&](const RestoreProgress&) {
    std::call_once(once, [&] { Write("deep/er/mine", "mine"); });
  };
  ASSERT_TRUE(Init(options));
  const auto saved = BackUp();
  ASSERT_TRUE(saved);
  EXPECT_EQ(saved->report.files, 21);
}

// Does something once, when LockWorkspace asks it for the time.
class BusyClock : public Clock {
 public:
  explicit BusyClock(std::function<void()> act) : act_(std::move(act)) {}
  int64_t WallUs() const override {
    if (act_) std::exchange(act_, nullptr)();
    return PosixClock().WallUs();
  }
  int64_t MonotonicUs() const override { return PosixClock().MonotonicUs(); }

 private:
  mutable std::function<void()> act_;
};

TEST_F(WorkspaceUse, WhatComesIntoAnEmptyFolderBeforeItIsLockedIsKept) {
  ASSERT_TRUE(CreateWorkspace(world_, request_));
  Write("a", "1");
  ASSERT_TRUE(BackUp());
  ASSERT_TRUE(files_.RemoveTree(Folder()));
  const FoundWorkspace found = Found();
  const Repository repository = Open();
  const BusyClock clock([&] {
    Write("a", "mine");
    // The clock of a file system goes in steps; the lock is to be later than this file.
    struct timespec then {
    }, now{};
    clock_gettime(CLOCK_REALTIME_COARSE, &then);
    do {
      clock_gettime(CLOCK_REALTIME_COARSE, &now);
    } while (now.tv_nsec == then.tv_nsec);
  });
  world_.clock = &clock;
  const auto init = InitWorkspace(world_, found, repository, "", {});
  ASSERT_TRUE(init) << init.error().message;
  EXPECT_EQ(Read("a"), "mine");
  EXPECT_EQ(init->report.kept, 1);
  EXPECT_EQ(init->report.failed, 1);
}

TEST_F(WorkspaceUse, AFolderInThePlaceOfAFileIsNotEmptiedByASnapshotThatHasAFolderThere) {
  ASSERT_TRUE(CreateWorkspace(world_, request_));
  ASSERT_TRUE(files_.MakeFolders(Folder() + "/d"));
  Write("d/theirs", "1");
  ASSERT_TRUE(BackUp());
  const auto with_folder = Open().Find("work", "latest");
  ASSERT_TRUE(files_.RemoveTree(Folder() + "/d"));
  Write("d", "a file");
  ASSERT_TRUE(BackUp());
  ASSERT_TRUE(files_.Remove(Folder() + "/d"));
  ASSERT_TRUE(files_.MakeFolders(Folder() + "/d"));
  Write("d/mine", "mine");
  const auto refused = RestoreInPlace(world_, Found(), Open(), *with_folder, {}, {});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("'d/mine'"), std::string::npos) << refused.error().message;
  EXPECT_EQ(Read("d/mine"), "mine");
}

// An hour ahead of the file system's clock: the cache of the last backup looks newer than what was written
// since.
class ClockAhead : public Clock {
 public:
  int64_t WallUs() const override { return PosixClock().WallUs() + int64_t{3'600'000'000}; }
  int64_t MonotonicUs() const override { return PosixClock().MonotonicUs(); }
};

TEST_F(WorkspaceUse, ANewFileKeepsItsFolderFromBecomingAFileAlsoWhereTheClockIsAhead) {
  const ClockAhead clock;
  world_.clock = &clock;
  ASSERT_TRUE(CreateWorkspace(world_, request_));
  Write("d", "a file");
  ASSERT_TRUE(BackUp());
  const auto with_file = Open().Find("work", "latest");
  ASSERT_TRUE(files_.Remove(Folder() + "/d"));
  ASSERT_TRUE(files_.MakeFolders(Folder() + "/d"));
  Write("d/theirs", "1");
  ASSERT_TRUE(BackUp());
  Write("d/mine", "mine");
  const auto refused = RestoreInPlace(world_, Found(), Open(), *with_file, {}, {});
  EXPECT_FALSE(refused);
  EXPECT_EQ(Read("d/mine"), "mine");
}

TEST_F(WorkspaceUse, WhatIsExcludedIsNotReplacedByASnapshotThatHasSomethingOfThatName) {
  request_.exclude = {"*.o", "build/"};
  ASSERT_TRUE(CreateWorkspace(world_, request_));
  Write("a", "1");
  ASSERT_TRUE(BackUp());
  // As an import makes it, or an older program.
  const std::string other = temp_ / "other";
  ASSERT_TRUE(files_.MakeFolders(other));
  for (const std::string name : {"a", "x.o", "build"})
    ASSERT_TRUE(files_.WriteAtomic(StrCat(other, "/", name), "theirs", false));
  BackupRequest theirs;
  theirs.folder = other;
  theirs.workspace = "work";
  const auto saved = Backup(Open(), theirs);
  ASSERT_TRUE(saved) << saved.error().message;
  Write("a", "theirs");  // so that the folder is that of no snapshot
  Write("x.o", "mine");
  ASSERT_TRUE(files_.MakeFolders(Folder() + "/build/deep"));
  Write("build/deep/mine", "mine");
  for (const std::vector<std::string>& paths : {std::vector<std::string>{"a", "x.o", "build"}, {}}) {
    const auto report = RestoreInPlace(world_, Found(), Open(), *saved->snapshot, paths, {});
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(report->kept, 2);
    EXPECT_EQ(report->failed, report->kept);
    EXPECT_EQ(Read("x.o"), "mine");
    EXPECT_EQ(Read("build/deep/mine"), "mine");
  }
  WorkspaceRestoreOptions force;
  force.force = true;
  ASSERT_TRUE(RestoreInPlace(world_, Found(), Open(), *saved->snapshot, {"x.o"}, force));
  EXPECT_EQ(Read("x.o"), "theirs");
}

TEST_F(WorkspaceUse, ASnapshotIsLaterThanItsParentWhateverTheClockSays) {
  FakeClock clock;
  clock.SetWall(PosixClock().WallUs() + 86'400'000'000);
  world_.clock = &clock;
  ASSERT_TRUE(CreateWorkspace(world_, request_));
  clock.SetWall(PosixClock().WallUs());
  Write("a", "1");
  const auto saved = BackUp();
  ASSERT_TRUE(saved && saved->report.snapshot);
  EXPECT_EQ(saved->report.snapshot->record.time_us, saved->report.parent->record.time_us + 1);
  EXPECT_EQ(saved->report.snapshot->record.clock_us, clock.WallUs());
  EXPECT_EQ(Open().Find("work", "latest")->Id(), saved->report.snapshot->Id());
  // An older program has no time of its own in it, and a clock that is behind.
  SnapshotRecord old = saved->report.snapshot->record;
  old.parent = saved->report.snapshot->Id();
  old.time_us = clock.WallUs();
  old.clock_us = 0;
  const auto child = Open().PutSnapshot(old);
  ASSERT_TRUE(child);
  EXPECT_EQ(Open().Snapshots("work")->back().Id(), child->Id());
}

TEST_F(WorkspaceUse, AForgottenSnapshotProvesNothing) {
  ASSERT_TRUE(CreateWorkspace(world_, request_));
  Write("a", "1");
  ASSERT_TRUE(BackUp());
  Write("a", "two");
  ASSERT_TRUE(BackUp());
  ASSERT_TRUE(Open().Forget(*Open().Find("work", "latest")));
  const auto status = LookAtWorkspace(Found(), Open());
  ASSERT_TRUE(status && status->changes);
  EXPECT_TRUE(status->base_gone);
  EXPECT_EQ(status->changes->changed, 1);
  EXPECT_EQ(Init().error().code, ErrorCode::kConflict);
  EXPECT_EQ(Read("a"), "two");
  ASSERT_TRUE(BackUp());
  EXPECT_EQ(Init()->outcome, InitOutcome::kHasNewest);
}

TEST_F(WorkspaceUse, AFolderWhoseSnapshotIsGoneIsNotOverwritten) {
  ASSERT_TRUE(CreateWorkspace(world_, request_));
  Write("a", "1");
  ASSERT_TRUE(BackUp());
  const auto old = ReadWorkspaceCopy(Folder()).value();
  Write("a", "two");
  ASSERT_TRUE(BackUp());
  Write("a", "one more time");
  ASSERT_TRUE(WriteWorkspaceCopy(Folder(), old));
  const Repository repository = Open();
  ASSERT_TRUE(PruneWorkspace(world_, Found().workspace, repository, {.rules = {.last = 1}, .progress = {}}));
  const auto refused = Init();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kConflict) << refused.error().message;
  EXPECT_EQ(Read("a"), "one more time");
}

TEST_F(WorkspaceUse, ABackupThatFailsInTheMiddleOfMakingLeavesNothing) {
  const std::atomic<bool> stop{true};
  request_.backup.stop = &stop;
  ASSERT_FALSE(CreateWorkspace(world_, request_));
  EXPECT_FALSE(files_.Exists(temp_ / "disk"));
  EXPECT_TRUE(AllWorkspaces(world_, nullptr).empty());
  request_.backup.stop = nullptr;
  EXPECT_TRUE(CreateWorkspace(world_, request_));
}

TEST_F(WorkspaceUse, SnapshotsOfANameThatIsNotKnownHereAreNotMixedWithNewOnes) {
  ASSERT_TRUE(CreateWorkspace(world_, request_));
  ASSERT_TRUE(WorkspaceBook(world_.roots[0]).Remove("work"));
  ASSERT_TRUE(files_.RemoveTree(Folder()));
  const auto mixed = CreateWorkspace(world_, request_);
  ASSERT_FALSE(mixed);
  EXPECT_EQ(mixed.error().code, ErrorCode::kConflict);
  const auto taken = RegisterWorkspace(world_, request_);
  ASSERT_TRUE(taken) << taken.error().message;
  EXPECT_EQ(Init()->outcome, InitOutcome::kRestored);
}

TEST_F(WorkspaceUse, WhoIsOvertakenByAnotherNodeIsTold) {
  ASSERT_TRUE(CreateWorkspace(world_, request_));
  const auto old = ReadWorkspaceCopy(Folder()).value();
  Write("a", "1");
  EXPECT_FALSE(BackUp()->overtaken);
  ASSERT_TRUE(WriteWorkspaceCopy(Folder(), old));  // as if that one had been taken elsewhere
  Write("a", "two");
  const auto saved = BackUp();
  ASSERT_TRUE(saved);
  EXPECT_TRUE(saved->overtaken);
}

TEST_F(WorkspaceUse, StatusCountsWhatIsNotSaved) {
  ASSERT_TRUE(CreateWorkspace(world_, request_));
  Write("a", "1");
  ASSERT_TRUE(BackUp());
  Write("a", "two");
  Write("b", "1");
  const auto status = LookAtWorkspace(Found(), Open());
  ASSERT_TRUE(status);
  ASSERT_TRUE(status->changes);
  EXPECT_EQ(status->changes->added, 1);
  EXPECT_EQ(status->changes->changed, 1);
  EXPECT_EQ(status->snapshots, 2);
  ASSERT_EQ(status->places.size(), 1u);
  EXPECT_EQ(status->places[0].host, "node1");
}

TEST_F(WorkspaceUse, AFolderIsListedWithoutWhatIsBelowItsFolders) {
  ASSERT_TRUE(CreateWorkspace(world_, request_));
  ASSERT_TRUE(files_.MakeFolders(Folder() + "/big"));
  for (int i = 0; i < 700; ++i) Write(StrCat("big/", i), "");
  Write("big.txt", "x");
  Write("z", std::string(5000, 'z'));
  ASSERT_TRUE(BackUp());
  const Repository repository = Open();
  auto contents = SnapshotContents::Open(repository);
  ASSERT_TRUE(contents);
  const auto newest = repository.Find("work", "latest");
  ASSERT_TRUE(newest);
  std::vector<std::string> names;
  const auto note = [&](const SnapshotEntry& entry) -> Result<void> {
    names.push_back(entry.path);
    return {};
  };
  ASSERT_TRUE(contents->List(*newest, "", false, note));
  EXPECT_EQ(names, (std::vector<std::string>{"big", "big.txt", "z"}));
  names.clear();
  ASSERT_TRUE(contents->List(*newest, "big", true, note));
  EXPECT_EQ(names.size(), 700u);
  std::string bytes;
  ASSERT_TRUE(contents->Cat(*newest, "z", [&](std::string_view piece) -> Result<void> {
    bytes += piece;
    return {};
  }));
  EXPECT_EQ(bytes, std::string(5000, 'z'));
  EXPECT_EQ(contents->Cat(*newest, "big", [](std::string_view) { return Result<void>(); }).error().code,
            ErrorCode::kUsage);
}

}  // namespace
}  // namespace overcap
