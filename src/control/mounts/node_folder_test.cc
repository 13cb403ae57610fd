// SPDX-License-Identifier: Apache-2.0
#include "control/mounts/node_folder.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "control/mounts/job_stores.h"
#include "control/mounts/place_link.h"
#include "control/mounts/sweep_mounts.h"
#include "sys/own_host_name.h"
#include "sys/posix_files.h"
#include "sys/testing/temp_folder.h"

namespace overcap {
namespace {

namespace fs = std::filesystem;

class NodeFolders : public testing::Test {
 protected:
  NodeFolders() : node_(temp_.Path() + "/node") { EXPECT_TRUE(OpenNodeFolder(node_)); }
  std::string File(const std::string& path) { return PosixFiles().Read(path).value_or("(none)"); }
  void Write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

  TempFolder temp_;
  const std::string node_;
};

TEST_F(NodeFolders, StandWhereTheClusterSays) {
  EXPECT_EQ(NodeFolderPath("", Variables()).value_or(""), StrCat("/tmp/overcap-mounts-", geteuid()));
  EXPECT_EQ(NodeFolderPath("$S/x", Variables({"S=/scratch"})).value_or(""),
            StrCat("/scratch/x/overcap-mounts-", geteuid()));
  EXPECT_FALSE(NodeFolderPath("$S/x", Variables()));
}

TEST_F(NodeFolders, ThatOthersCanReachAreRefused) {
  EXPECT_TRUE(OpenNodeFolder(node_));
  chmod(node_.c_str(), 0755);
  EXPECT_EQ(OpenNodeFolder(node_).error().code, ErrorCode::kDenied);
  fs::create_symlink(temp_.Path(), temp_.Path() + "/link");
  EXPECT_EQ(OpenNodeFolder(temp_.Path() + "/link").error().code, ErrorCode::kDenied);
}

TEST_F(NodeFolders, AreNamedWithoutLinks) {
  fs::create_directory(temp_.Path() + "/disk");
  fs::create_symlink(temp_.Path() + "/disk", temp_.Path() + "/scratch");
  EXPECT_EQ(OpenNodeFolder(temp_.Path() + "/scratch/node").value_or(""),
            fs::canonical(temp_.Path()).string() + "/disk/node");
}

TEST_F(NodeFolders, ASlotIsHeldByOneAndFreeWhenThatIsGone) {
  {
    auto slot = SlotFolder::Make(node_, "job.1.0");
    ASSERT_TRUE(slot);
    EXPECT_EQ(SlotFolder::Take(slot->path()).error().code, ErrorCode::kConflict);
  }
  auto taken = SlotFolder::Take(node_ + "/job.1.0");
  ASSERT_TRUE(taken);
  Write(taken->path() + "/.data.yaml", "x");
  EXPECT_FALSE(taken->Remove());
  unlink((taken->path() + "/.data.yaml").c_str());
  EXPECT_TRUE(taken->Remove());
  EXPECT_FALSE(fs::exists(node_ + "/job.1.0"));
}

TEST_F(NodeFolders, AnAttemptBeforeIsSeenAsLongAsItHolds) {
  const auto held = [&](int attempt, int slot) {
    return SlotFolder::IsHeldBefore(node_, "job", attempt, slot);
  };
  {
    auto slot = SlotFolder::Make(node_, "job.1.0");
    ASSERT_TRUE(slot);
    EXPECT_FALSE(held(1, 0));
    EXPECT_TRUE(held(2, 0));
    EXPECT_TRUE(held(3, 0));
    EXPECT_FALSE(held(2, 1));
  }
  EXPECT_FALSE(held(2, 0));
}

TEST_F(NodeFolders, WhatAKilledKeeperLeftIsClearedButNotItsOutputs) {
  MountSpec mount;
  mount.name = mount.at = "data";
  mount.store = "s3://bucket";
  MountSpec copy = mount;
  copy.name = copy.at = "out";
  copy.mode = MountMode::kCopy;
  copy.store = temp_.Path() + "/store";
  fs::create_directories(copy.store);
  std::string held;
  {
    auto slot = SlotFolder::Make(node_, "job.1.0");
    ASSERT_TRUE(slot);
    Write(slot->Record(), MountsRecordText({OwnHostName(), {mount, copy}}));
    Write(slot->PlacesOf("data").config, "secret");
    fs::create_directories(slot->PlacesOf("data").cache + "/files");
    fs::create_directory(slot->PlacesOf("data").point);
    fs::create_directory(slot->PlacesOf("out").point);
    Write(slot->PlacesOf("out").point + "/result", "7");
    Write(slot->HadFile("out"), "");
    held = slot->path();
    EXPECT_EQ(SweepMounts(node_, Variables(), {.all = true}).slots, 0);  // somebody holds it
    EXPECT_TRUE(fs::exists(held + "/.data.yaml"));
  }
  const MountsSwept careful = SweepMounts(node_, Variables(), {.job = "another"});
  EXPECT_EQ(careful.slots, 0);
  ASSERT_EQ(careful.unsaved.size(), 1u);
  EXPECT_FALSE(fs::exists(held + "/.data.yaml"));
  EXPECT_FALSE(fs::exists(held + "/.data.cache"));
  EXPECT_EQ(File(held + "/out/result"), "7");
  const MountsSwept saved = SweepMounts(node_, Variables(), {.all = true});
  EXPECT_EQ(saved.slots, 1);
  EXPECT_EQ(saved.saved, 1);
  EXPECT_TRUE(saved.unsaved.empty());
  EXPECT_EQ(File(copy.store + "/result"), "7");
  EXPECT_FALSE(fs::exists(held));
}

TEST_F(NodeFolders, WhatAnotherHostHasOnASharedDiskIsLeftAlone) {
  auto made = SlotFolder::Make(node_, "job.1.0");
  ASSERT_TRUE(made);
  const std::string path = made->path();
  Write(made->Record(), MountsRecordText({"another-host", {}}));
  made = Fail(ErrorCode::kNotFound, "");  // its lock is not seen here
  EXPECT_EQ(SweepMounts(node_, Variables(), {.all = true}).slots, 0);
  EXPECT_TRUE(fs::exists(path));
}

TEST_F(NodeFolders, ALinkTakesTheNameOfALinkOrAnEmptyFolderOnly) {
  const std::string code = temp_.Path() + "/code", target = temp_.Path() + "/target";
  fs::create_directories(code + "/full");
  fs::create_directory(code + "/empty");
  Write(code + "/full/file", "x");
  fs::create_symlink("/old", code + "/link");
  for (const char* at : {"data", "empty", "link", "in/deep/er", "data"}) {
    EXPECT_TRUE(PlaceLink(code, at, target)) << at;
    EXPECT_EQ(fs::read_symlink(code + "/" + at), target) << at;
  }
  EXPECT_EQ(PlaceLink(code, "full", target).error().message, "'full' is in the job's folder already");
  EXPECT_FALSE(PlaceLink(code, "full/file", target));
  fs::create_symlink("/", code + "/out");
  EXPECT_FALSE(PlaceLink(code, "out/tmp", target));
  RemoveLink(code, "data", "/another");
  EXPECT_TRUE(fs::is_symlink(code + "/data"));
  RemoveLink(code, "data", target);
  EXPECT_FALSE(fs::is_symlink(code + "/data"));
}

}  // namespace
}  // namespace overcap
