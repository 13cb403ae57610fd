// SPDX-License-Identifier: Apache-2.0
// A put that is cut off or fails at each of its steps, on real files.
#include <cerrno>
#include <filesystem>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "stores/file/file_store.h"
#include "stores/testing/quick_folder.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

constexpr int kNever = 1000;

// Calls `at` at the n-th step (from 0) of all puts.
FilePutHook AtStep(int n, std::function<int(FilePutStep)> at) {
  return [n, at = std::move(at), step = std::make_shared<int>(0)](FilePutStep which) {
    return (*step)++ == n ? at(which) : 0;
  };
}

// Puts in a process that is killed at the n-th step; whether it was.
bool PutAndDie(const std::string& folder, int n, const std::string& key, std::string_view bytes,
               PutMode mode) {
  const pid_t pid = fork();
  if (pid == 0) {
    const FilePutHook hook = AtStep(n, [](FilePutStep) -> int { _exit(99); });
    const auto store = FileStore::Open(folder, true, hook);
    _exit(store && (*store)->Put(key, bytes, mode) ? 0 : 1);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && (WEXITSTATUS(status) == 99 || WEXITSTATUS(status) == 0));
  return WEXITSTATUS(status) == 99;
}

std::string TemporaryIn(const std::string& folder) {
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().filename().string().starts_with(kTemporaryBegin)) return entry.path();
  }
  return "";
}

struct Case {
  const char* name;
  PutMode mode;
  bool there_before;
};

class PutCrash : public testing::TestWithParam<Case> {
 protected:
  // A store with what the case wants to be there.
  std::string Prepare(const QuickFolder& folder) {
    const std::string path = folder / "store";
    const auto store = FileStore::Open(path, true);
    EXPECT_TRUE((*store)->Put("other", "other"));
    EXPECT_TRUE(!GetParam().there_before || (*store)->Put("packs/ab/x", kOld));
    return path;
  }
  // What the next process finds: the old content or the new one, nothing half, nothing that stays.
  void ExpectWhole(const std::string& path) {
    const auto store = FileStore::Open(path, false);
    const Result<std::string> bytes = (*store)->Get("packs/ab/x");
    if (GetParam().there_before || bytes) {
      ASSERT_TRUE(bytes);
      EXPECT_TRUE(*bytes == kNew || (GetParam().there_before && *bytes == kOld)) << bytes->size();
    }
    EXPECT_EQ(*(*store)->Get("other"), "other");
    const size_t listed = (*store)->ListAll("")->size();
    EXPECT_EQ(listed, bytes ? 2u : 1u);
    ASSERT_TRUE((*store)->CleanUp(0));
    EXPECT_EQ(*(*store)->CleanUp(0), 0);
    EXPECT_EQ((*store)->ListAll("")->size(), listed);
    ASSERT_TRUE((*store)->Put("packs/ab/x", "again"));
    EXPECT_EQ(*(*store)->Get("packs/ab/x"), "again");
  }

  const std::string kOld = std::string(100'000, 'o'), kNew = std::string(200'000, 'n');
};

TEST_P(PutCrash, KilledAtAnyStepLeavesTheOldOrTheNew) {
  int killed = 0;
  for (int step = 0; step < kNever; ++step) {
    const QuickFolder folder;
    const std::string path = Prepare(folder);
    if (!PutAndDie(path, step, "packs/ab/x", kNew, GetParam().mode)) break;
    ExpectWhole(path);
    ++killed;
  }
  EXPECT_GE(killed, 5);
  EXPECT_LT(killed, 20);
}

TEST_P(PutCrash, AFullDiskAtAnyStepIsToldAndLeavesNothingBehind) {
  int failed = 0;
  for (int step = 0; step < kNever; ++step) {
    const QuickFolder folder;
    const std::string path = Prepare(folder);
    FilePutStep at{};
    const FilePutHook hook = AtStep(step, [&](FilePutStep which) { return at = which, ENOSPC; });
    const Result<void> put = (*FileStore::Open(path, false, hook))->Put("packs/ab/x", kNew, GetParam().mode);
    if (put) break;
    ++failed;
    EXPECT_EQ(put.error().code, ErrorCode::kUnavailable);
    EXPECT_NE(put.error().message.find("'packs/ab/x' in store '" + path + "'"), std::string::npos);
    EXPECT_NE(put.error().hint.find("df -h " + path), std::string::npos) << put.error().hint;
    EXPECT_EQ(*(*FileStore::Open(path, false))->CleanUp(0), 0) << "step " << static_cast<int>(at);
    ExpectWhole(path);
  }
  EXPECT_GE(failed, 5);
}

INSTANTIATE_TEST_SUITE_P(All, PutCrash,
                         testing::Values(Case{"new", PutMode::kReplace, false},
                                         Case{"replace", PutMode::kReplace, true},
                                         Case{"create", PutMode::kCreate, false}),
                         [](const auto& instance) { return instance.param.name; });

// File systems without RENAME_NOREPLACE: EINVAL of that step goes over to links.
class PutByLink : public testing::Test {
 protected:
  static FilePutHook NoNoReplace(std::function<int(FilePutStep)> more = nullptr) {
    return [more = std::move(more)](FilePutStep step) {
      if (step == FilePutStep::kRenameNew) return EINVAL;
      return more ? more(step) : 0;
    };
  }

  QuickFolder folder_;
  const std::string path_ = folder_ / "store";
};

TEST_F(PutByLink, ExactlyOneWins) {
  const auto store = FileStore::Open(path_, true, NoNoReplace());
  ASSERT_TRUE((*store)->Put("a/b", "first", PutMode::kCreate));
  EXPECT_EQ((*store)->Put("a/b", "second", PutMode::kCreate).error().code, ErrorCode::kConflict);
  EXPECT_EQ(*(*store)->Get("a/b"), "first");
  struct stat info {};
  ASSERT_EQ(stat((path_ + "/a/b").c_str(), &info), 0);
  EXPECT_EQ(info.st_nlink, 1u);
  EXPECT_EQ(*(*store)->CleanUp(0), 0);
}

TEST_F(PutByLink, OneWhoCameFirstMeanwhileWins) {
  const auto first = FileStore::Open(path_, true);
  const auto second = FileStore::Open(path_, false, NoNoReplace([&](FilePutStep step) {
                                        if (step == FilePutStep::kLink) (void)(*first)->Put("a/b", "first");
                                        return 0;
                                      }));
  EXPECT_EQ((*second)->Put("a/b", "second", PutMode::kCreate).error().code, ErrorCode::kConflict);
  EXPECT_EQ(*(*first)->Get("a/b"), "first");
  EXPECT_EQ(*(*first)->CleanUp(0), 0);
}

// NFS sends a link or rename again when the answer got lost; the second one fails though the first was done.
TEST_F(PutByLink, WhatWasDoneButFailedWasDone) {
  const auto do_it_first = [&](FilePutStep step) {
    if (step != FilePutStep::kLink && step != FilePutStep::kRename) return 0;
    const std::string found = TemporaryIn(path_ + "/a"), target = path_ + "/a/b";
    EXPECT_EQ(step == FilePutStep::kLink ? link(found.c_str(), target.c_str())
                                         : rename(found.c_str(), target.c_str()),
              0);
    return 0;
  };
  const auto store = FileStore::Open(path_, true, NoNoReplace(do_it_first));
  EXPECT_TRUE((*store)->Put("a/b", "linked", PutMode::kCreate));
  EXPECT_EQ(*(*store)->Get("a/b"), "linked");
  EXPECT_TRUE((*store)->Put("a/b", "renamed"));
  EXPECT_EQ(*(*store)->Get("a/b"), "renamed");
  EXPECT_EQ(*(*store)->CleanUp(0), 0);
}

TEST_F(PutByLink, KilledBetweenLinkAndUnlinkLeavesTheNewAndWhatCleanUpFinds) {
  const auto store = FileStore::Open(path_, true, NoNoReplace([](FilePutStep step) {
                                       return step == FilePutStep::kDropTemporary ? EIO : 0;
                                     }));
  EXPECT_FALSE((*store)->Put("a/b", "new", PutMode::kCreate));
  EXPECT_EQ(*(*store)->Get("a/b"), "new");
}

TEST_F(PutByLink, WithoutLinksAndSafeRenamesItSaysSo) {
  const auto store = FileStore::Open(
      path_, true, NoNoReplace([](FilePutStep step) { return step == FilePutStep::kLink ? EPERM : 0; }));
  const Result<void> put = (*store)->Put("a/b", "new", PutMode::kCreate);
  ASSERT_FALSE(put);
  EXPECT_EQ(put.error().code, ErrorCode::kDenied);
  EXPECT_NE(put.error().hint.find("another"), std::string::npos);
  EXPECT_EQ((*store)->Get("a/b").error().code, ErrorCode::kNotFound);
}

// The file server has forgotten what was open: once it is opened anew, forever it is told.
TEST(FileStoreStale, IsTriedAgain) {
  const QuickFolder folder;
  int left = 1;
  const FilePutHook stale = [&](FilePutStep step) {
    return step == FilePutStep::kSyncFile && left-- > 0 ? ESTALE : 0;
  };
  const auto store = FileStore::Open(folder / "store", true, stale);
  ASSERT_TRUE((*store)->Put("a/b", "1"));
  EXPECT_EQ(*(*store)->Get("a/b"), "1");
  EXPECT_EQ(*(*store)->CleanUp(0), 0);
  left = kNever;
  const Result<void> put = (*store)->Put("a/b", "2");
  ASSERT_FALSE(put);
  EXPECT_EQ(put.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(*(*store)->Get("a/b"), "1");
}

}  // namespace
}  // namespace overcap
