// SPDX-License-Identifier: Apache-2.0
#include "sys/user_area_files.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "sys/as_user.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

namespace fs = std::filesystem;

constexpr uid_t kAlice = 61001, kBob = 61002;

std::string TextOf(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class UserAreaFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: acting as others needs root";
    std::string folder = "/tmp/overcap-area-XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    root_ = folder;
    ASSERT_EQ(chmod(root_.c_str(), 0711), 0);
    ASSERT_EQ(mkdir((root_ + "/users").c_str(), 0711), 0);
    ASSERT_EQ(chmod((root_ + "/users").c_str(), 0711), 0);
    files_ = std::make_unique<UserAreaFiles>(plain_, root_ + "/users");
    const auto area = files_->MakeArea(kAlice, kAlice);
    ASSERT_TRUE(area) << area.error().message;
    alice_ = *area;
  }
  void TearDown() override {
    if (root_.empty()) return;
    EXPECT_EQ(setfsuid(static_cast<uid_t>(-1)), 0) << "it is root again after every call";
    fs::remove_all(root_);
  }
  uid_t OwnerOf(const std::string& path) {
    struct stat info {};
    return lstat(path.c_str(), &info) == 0 ? info.st_uid : static_cast<uid_t>(-1);
  }
  std::string Secret(const std::string& text) {
    std::string path = root_ + "/secret";
    EXPECT_TRUE(plain_.WriteAtomic(path, text, false));
    return path;
  }

  std::string root_, alice_;
  PosixFiles plain_;
  std::unique_ptr<UserAreaFiles> files_;
};

TEST_F(UserAreaFilesTest, WhatItMakesBelongsToTheUserAndIsPrivate) {
  ASSERT_TRUE(files_->MakeFolders(alice_ + "/jobs/a/attempt-1"));
  ASSERT_TRUE(files_->WriteAtomic(alice_ + "/jobs/a/spec.json", "spec", false));
  ASSERT_TRUE((*files_->OpenAppend(alice_ + "/jobs/a/events"))->Append("one"));
  ASSERT_TRUE(files_->CreateExclusive(alice_ + "/jobs/a/claim", "mine"));
  EXPECT_EQ(files_->CreateExclusive(alice_ + "/jobs/a/claim", "mine").error().code, ErrorCode::kConflict);
  for (const char* name : {"", "/jobs", "/jobs/a", "/jobs/a/attempt-1", "/jobs/a/spec.json", "/jobs/a/events",
                           "/jobs/a/claim"}) {
    struct stat info {};
    ASSERT_EQ(lstat((alice_ + name).c_str(), &info), 0) << name;
    EXPECT_EQ(info.st_uid, kAlice) << name;
    EXPECT_EQ(info.st_gid, kAlice) << name;
    EXPECT_EQ(info.st_mode & 077u, 0u) << name;
  }
  EXPECT_EQ(*files_->Read(alice_ + "/jobs/a/spec.json"), "spec");
  EXPECT_EQ(*files_->ReadRange(alice_ + "/jobs/a/spec.json", 1, 2), "pe");
  EXPECT_EQ(*files_->List(alice_ + "/jobs/a"),
            (std::vector<std::string>{"attempt-1", "claim", "events", "spec.json"}));
  EXPECT_TRUE(files_->Exists(alice_ + "/jobs/a"));
  EXPECT_TRUE(files_->Remove(alice_ + "/jobs/a/claim"));
  EXPECT_FALSE(files_->Exists(alice_ + "/jobs/a/claim"));
}

TEST_F(UserAreaFilesTest, OutsideOfAreasItIsAsEver) {
  ASSERT_TRUE(files_->WriteAtomic(root_ + "/journal", "x", false));
  EXPECT_EQ(OwnerOf(root_ + "/journal"), 0u);
  EXPECT_EQ(*files_->Read(root_ + "/journal"), "x");
}

TEST_F(UserAreaFilesTest, NoLinkIsFollowed) {
  const std::string secret = Secret("of root");
  ASSERT_EQ(symlink(secret.c_str(), (alice_ + "/link").c_str()), 0);
  ASSERT_EQ(symlink(root_.c_str(), (alice_ + "/jobs").c_str()), 0);
  EXPECT_FALSE(files_->Read(alice_ + "/link"));
  EXPECT_FALSE(files_->OpenAppend(alice_ + "/link"));
  EXPECT_FALSE(files_->Read(alice_ + "/jobs/secret"));
  EXPECT_FALSE(files_->MakeFolders(alice_ + "/jobs/new"));
  EXPECT_FALSE(files_->WriteAtomic(alice_ + "/jobs/new", "x", false));
  EXPECT_FALSE(files_->List(alice_ + "/jobs"));
  EXPECT_FALSE(files_->Rename(alice_ + "/jobs/secret", alice_ + "/taken"));
  EXPECT_FALSE(files_->Remove(alice_ + "/jobs/secret"));
  // A link itself may be replaced: what it led to stays.
  EXPECT_TRUE(files_->WriteAtomic(alice_ + "/link", "new", false));
  EXPECT_EQ(TextOf(secret), "of root");
}

TEST_F(UserAreaFilesTest, DotsLeadNowhere) {
  Secret("of root");
  for (const char* path : {"/../../secret", "/x/../../../secret", "/.."}) {
    EXPECT_FALSE(files_->Read(alice_ + path)) << path;
    EXPECT_FALSE(files_->WriteAtomic(alice_ + path, "x", false)) << path;
    EXPECT_FALSE(files_->MakeFolders(alice_ + path)) << path;
    (void)files_->RemoveTree(alice_ + path);
  }
  EXPECT_EQ(TextOf(root_ + "/secret"), "of root");
}

TEST_F(UserAreaFilesTest, PipesAndFoldersAreNoFilesAndHoldUpNobody) {
  ASSERT_EQ(mkfifo((alice_ + "/pipe").c_str(), 0666), 0);
  EXPECT_FALSE(files_->Read(alice_ + "/pipe"));
  EXPECT_FALSE(files_->OpenAppend(alice_ + "/pipe"));
  EXPECT_FALSE(files_->Read(alice_));
}

TEST_F(UserAreaFilesTest, AHardLinkToWhatTheUserMayNotReadGivesNothing) {
  const std::string secret = Secret("of root");
  ASSERT_EQ(link(secret.c_str(), (alice_ + "/hard").c_str()), 0);  // made by root, as old kernels let users
  EXPECT_EQ(files_->Read(alice_ + "/hard").error().code, ErrorCode::kDenied);
  EXPECT_EQ(files_->OpenAppend(alice_ + "/hard").error().code, ErrorCode::kDenied);
}

TEST_F(UserAreaFilesTest, AnAreaThatIsNotTheUsersIsRefused) {
  ASSERT_EQ(chown(alice_.c_str(), kBob, kBob), 0);
  EXPECT_EQ(files_->Read(alice_ + "/x").error().code, ErrorCode::kDenied);
  EXPECT_EQ(files_->MakeArea(kAlice, kAlice).error().code, ErrorCode::kDenied);
  ASSERT_EQ(symlink("/etc", (root_ + "/users/" + std::to_string(kBob)).c_str()), 0);
  EXPECT_FALSE(files_->MakeArea(kBob, kBob));
  EXPECT_FALSE(files_->Read(StrCat(root_, "/users/", kBob, "/passwd")));
}

TEST_F(UserAreaFilesTest, AnAreaThatAUserHasOpenedIsClosedAgain) {
  ASSERT_EQ(chmod(alice_.c_str(), 0777), 0);
  ASSERT_TRUE(files_->MakeArea(kAlice, kAlice));
  struct stat info {};
  ASSERT_EQ(lstat(alice_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0700u);
}

TEST_F(UserAreaFilesTest, NothingIsRenamedFromOneAreaIntoAnother) {
  ASSERT_TRUE(files_->MakeArea(kBob, kBob));
  const std::string bob = StrCat(root_, "/users/", kBob);
  ASSERT_TRUE(files_->WriteAtomic(bob + "/file", "bob's", false));
  EXPECT_FALSE(files_->Rename(bob + "/file", alice_ + "/file"));
  EXPECT_FALSE(files_->Rename(bob + "/file", root_ + "/file"));
  EXPECT_EQ(TextOf(bob + "/file"), "bob's");
}

TEST_F(UserAreaFilesTest, ATreeGoesIntoTheTrash) {
  ASSERT_TRUE(files_->MakeFolders(alice_ + "/jobs/a/b"));
  ASSERT_TRUE(files_->RemoveTree(alice_ + "/jobs/a"));
  EXPECT_FALSE(files_->Exists(alice_ + "/jobs/a"));
  EXPECT_EQ(files_->List(alice_ + "/trash")->size(), 1u);
  EXPECT_TRUE(files_->RemoveTree(alice_ + "/jobs/a")) << "fine when it is gone";
}

// Bit 24 of the effective capabilities.
bool MayExceedQuotas() {
  std::ifstream status("/proc/thread-self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("CapEff:")) return (std::stoull(line.substr(7), nullptr, 16) >> 24 & 1) != 0;
  }
  return false;
}

TEST_F(UserAreaFilesTest, AsAUserTheThreadIsBoundByQuotasAndAfterwardsIsNot) {
  if (!MayExceedQuotas()) GTEST_SKIP() << "NOT TESTED: root has no CAP_SYS_RESOURCE here";
  {
    const auto as = AsUser::Become(kAlice, kAlice);
    ASSERT_TRUE(as);
    EXPECT_FALSE(MayExceedQuotas());
  }
  EXPECT_TRUE(MayExceedQuotas());
}

TEST_F(UserAreaFilesTest, AnAreaIsMadeWithItsTrash) {
  struct stat info {};
  ASSERT_EQ(lstat((alice_ + "/trash").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, kAlice);
}

}  // namespace
}  // namespace overcap
