// SPDX-License-Identifier: Apache-2.0
#include "snapshot/restore/restore.h"

#include <atomic>
#include <fcntl.h>
#include <filesystem>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "snapshot/restore/testing/restore_rig.h"

namespace overcap {
namespace {

namespace fs = std::filesystem;
using Lines = std::vector<std::string>;

class RestoreTest : public testing::Test {
 protected:
  // A few of everything.
  void MakeSource() {
    PutFile(rig_.Source("a.txt"), "alpha");
    PutFile(rig_.Source("empty"), "");
    PutFile(rig_.Source("bin/tool"), "#!/bin/sh\n", true);
    PutFile(rig_.Source("deep/er/still/file"), "deep");
    PutFile(rig_.Source("big"), NoiseOf(3'000'000, 1));
    PutFile(rig_.Source("big copy"), NoiseOf(3'000'000, 1));
    fs::create_directories(rig_.Source("hollow/folder"));
    fs::create_symlink("a.txt", rig_.Source("link"));
    fs::create_hard_link(rig_.Source("a.txt"), rig_.Source("deep/same"));
    SetModeAndTime(rig_.Source("a.txt"), 0640, 1'600'000'000, 123'456'789);
    SetModeAndTime(rig_.Source("link"), 0, 1'500'000'000, 1);
    SetModeAndTime(rig_.Source("hollow"), 0750, 1'400'000'000, 2);
  }
  static int64_t Inode(const std::string& path) {
    struct stat status;
    return lstat(path.c_str(), &status) == 0 ? static_cast<int64_t>(status.st_ino) : -1;
  }

  RestoreRig rig_;
};

TEST_F(RestoreTest, AFolderComesBackAsItWas) {
  MakeSource();
  const RestoreReport report = rig_.Restored(rig_.Request(rig_.Save()));
  EXPECT_EQ(rig_.Differences(), Lines{});
  EXPECT_EQ(report.failed, 0);
  EXPECT_EQ(report.files, 6);
  EXPECT_EQ(report.written_files, 6);
  EXPECT_EQ(report.bytes, 6'000'019);
  EXPECT_EQ(report.written_bytes, 6'000'019);
  EXPECT_FALSE(fs::exists(rig_.Target(".overcap")));
}

TEST_F(RestoreTest, WhatIsRightIsLeftAlone) {
  MakeSource();
  const Digest tree = rig_.Save();
  rig_.Restored(rig_.Request(tree));
  const int64_t inode = Inode(rig_.Target("big"));
  const RestoreReport again = rig_.Restored(rig_.Request(tree));
  EXPECT_EQ(again.same_files, 6);
  EXPECT_EQ(again.written_files, 0);
  EXPECT_EQ(Inode(rig_.Target("big")), inode);
  EXPECT_EQ(rig_.Differences(), Lines{});
}

TEST_F(RestoreTest, WhatDiffersIsReplacedAndNeverWrittenInto) {
  MakeSource();
  const Digest tree = rig_.Save();
  rig_.Restored(rig_.Request(tree));
  fs::create_hard_link(rig_.Target("bin/tool"), rig_.temp() / "elsewhere");
  PutFile(rig_.Target("bin/tool"), "#!/bin/no\n", true);
  PutFile(rig_.Target("big"), NoiseOf(3'000'000, 2));
  fs::remove(rig_.Target("link"));
  fs::create_symlink("empty", rig_.Target("link"));
  const RestoreReport report = rig_.Restored(rig_.Request(tree));
  EXPECT_EQ(report.written_files, 2);
  EXPECT_EQ(rig_.Differences(), Lines{});
  EXPECT_EQ(Describe(rig_.temp().Path())["elsewhere"], "exec #!/bin/no\n");
}

TEST_F(RestoreTest, AttributesAloneAreSetWithoutWriting) {
  MakeSource();
  const Digest tree = rig_.Save();
  rig_.Restored(rig_.Request(tree));
  const int64_t inode = Inode(rig_.Target("empty"));
  SetModeAndTime(rig_.Target("empty"), 0600, 5, 5);
  SetModeAndTime(rig_.Target("hollow"), 0700, 5, 5);
  SetModeAndTime(rig_.Target("link"), 0, 5, 5);
  const RestoreReport report = rig_.Restored(rig_.Request(tree));
  EXPECT_EQ(report.written_files, 0);
  EXPECT_EQ(Inode(rig_.Target("empty")), inode);
  EXPECT_EQ(rig_.Differences(), Lines{});
}

TEST_F(RestoreTest, HardLinksAreJoinedAndCut) {
  MakeSource();
  const Digest tree = rig_.Save();
  rig_.Restored(rig_.Request(tree));
  fs::remove(rig_.Target("deep/same"));
  fs::copy_file(rig_.Target("a.txt"), rig_.Target("deep/same"));
  fs::remove(rig_.Target("big copy"));
  fs::create_hard_link(rig_.Target("big"), rig_.Target("big copy"));
  rig_.Restored(rig_.Request(tree));
  EXPECT_EQ(rig_.Differences(), Lines{});
}

TEST_F(RestoreTest, ExtrasStayUnlessTheyAreToGo) {
  MakeSource();
  const Digest tree = rig_.Save();
  rig_.Restored(rig_.Request(tree));
  PutFile(rig_.Target("extra/deep/file"), "mine");
  PutFile(rig_.Target("bin/extra"), "mine");
  PutFile(rig_.Target("extra/keep.ckpt"), "mine");
  PutFile(rig_.Target(".overcap/state"), "mine");
  EXPECT_EQ(rig_.Restored(rig_.Request(tree)).removed, 0);
  EXPECT_TRUE(fs::exists(rig_.Target("extra/deep/file")));
  RestoreRequest request = rig_.Request(tree);
  request.remove_extra = true;
  request.exclude = {"*.ckpt"};
  EXPECT_EQ(rig_.Restored(request).removed, 3);
  EXPECT_EQ(rig_.Differences(), (Lines{"extra: is only on the right"}));
  EXPECT_TRUE(fs::exists(rig_.Target("extra/keep.ckpt")));
  request.exclude = {};
  EXPECT_EQ(rig_.Restored(request).removed, 2);
  EXPECT_EQ(rig_.Differences(), Lines{});
  EXPECT_TRUE(fs::exists(rig_.Target(".overcap/state")));
}

TEST_F(RestoreTest, WhatNoSnapshotCouldHaveStays) {
  MakeSource();
  const Digest tree = rig_.Save();
  rig_.Restored(rig_.Request(tree));
  ASSERT_EQ(mkfifo(rig_.Target("bin/pipe").c_str(), 0600), 0);
  RestoreRequest request = rig_.Request(tree);
  request.remove_extra = true;
  EXPECT_EQ(rig_.Restored(request).removed, 0);
  EXPECT_TRUE(fs::exists(rig_.Target("bin/pipe")));
}

TEST_F(RestoreTest, EntriesOfAnotherTypeMakeRoom) {
  MakeSource();
  const Digest tree = rig_.Save();
  fs::create_directories(rig_.Target("a.txt"));                 // empty: goes
  fs::create_directories(rig_.Target("empty/with"));            // not empty: stays
  PutFile(rig_.Target("deep"), "a file");                       // in the way of a folder
  fs::create_directory_symlink("/tmp", rig_.Target("hollow"));  // a link in the way of a folder
  Result<RestoreReport> report = Restore(rig_.repository(), rig_.Request(tree));
  ASSERT_TRUE(report);
  ASSERT_EQ(report->problems.size(), 1u);
  EXPECT_EQ(report->problems[0].path, "empty");
  EXPECT_EQ(report->problems[0].what, "a folder with something in it is in its place");
  EXPECT_TRUE(fs::is_directory(rig_.Target("empty/with")));
  EXPECT_FALSE(fs::is_symlink(rig_.Target("hollow")));
  RestoreRequest request = rig_.Request(tree);
  request.remove_extra = true;
  rig_.Restored(request);
  EXPECT_EQ(rig_.Differences(), Lines{});
}

TEST_F(RestoreTest, SomePathsOnly) {
  MakeSource();
  RestoreRequest request = rig_.Request(rig_.Save());
  request.paths = {"./deep/er/", "big", "deep/er/still/file"};
  const RestoreReport report = rig_.Restored(request);
  EXPECT_EQ(report.files, 2);
  const auto found = Describe(rig_.Target());
  EXPECT_EQ(found.size(), 5u);
  EXPECT_EQ(found.at("deep/er/still/file"), "file deep");
  struct stat made, source;
  ASSERT_EQ(stat(rig_.Target("deep").c_str(), &made), 0);
  ASSERT_EQ(stat(rig_.Source("deep").c_str(), &source), 0);
  EXPECT_EQ(made.st_mtim.tv_nsec, source.st_mtim.tv_nsec);
}

TEST_F(RestoreTest, AHardLinkWithoutItsFirstNameIsAFile) {
  MakeSource();
  RestoreRequest request = rig_.Request(rig_.Save());
  request.paths = {"deep/same"};
  rig_.Restored(request);
  EXPECT_EQ(Describe(rig_.Target()).at("deep/same"), "file alpha");
}

TEST_F(RestoreTest, APathThatIsNotThereIsAnErrorBeforeAnythingIsDone) {
  MakeSource();
  RestoreRequest request = rig_.Request(rig_.Save());
  for (const char* path : {"deep/nothing", "a.txt/below", "nothing"}) {
    request.paths = {"big", path};
    const Result<RestoreReport> report = Restore(rig_.repository(), request);
    ASSERT_FALSE(report) << path;
    EXPECT_EQ(report.error().code, ErrorCode::kNotFound);
  }
  for (const char* path : {"../x", "/etc"}) {
    request.paths = {path};
    EXPECT_EQ(Restore(rig_.repository(), request).error().code, ErrorCode::kUsage);
  }
  EXPECT_FALSE(fs::exists(rig_.Target()));
}

TEST_F(RestoreTest, StopsWhenItIsToldTo) {
  MakeSource();
  RestoreRequest request = rig_.Request(rig_.Save());
  const std::atomic<bool> stop = true;
  request.stop = &stop;
  const Result<RestoreReport> report = Restore(rig_.repository(), request);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::kConflict);
}

TEST_F(RestoreTest, TellsHowFarItIs) {
  MakeSource();
  RestoreRequest request = rig_.Request(rig_.Save());
  std::atomic<int64_t> calls = 0, bytes = 0, total = 0;
  request.progress = [&](const RestoreProgress& progress) {
    ++calls;
    bytes = progress.bytes_done;
    total = progress.bytes_total;
  };
  rig_.Restored(request);
  EXPECT_GE(calls, 1);
  EXPECT_EQ(bytes, 6'000'019);
  EXPECT_EQ(total, 6'000'019);
}

TEST_F(RestoreTest, TheTargetMustBeAFolder) {
  MakeSource();
  RestoreRequest request = rig_.Request(rig_.Save());
  PutFile(rig_.temp() / "file", "x");
  request.target = rig_.temp() / "file";
  EXPECT_EQ(Restore(rig_.repository(), request).error().code, ErrorCode::kConflict);
  request.target = "relative";
  EXPECT_EQ(Restore(rig_.repository(), request).error().code, ErrorCode::kUsage);
  request.target = rig_.temp() / "new/and/deep";
  EXPECT_TRUE(Restore(rig_.repository(), request));
}

}  // namespace
}  // namespace overcap
