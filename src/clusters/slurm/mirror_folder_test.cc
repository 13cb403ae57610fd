// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/mirror_folder.h"

#include <fcntl.h>
#include <fstream>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/testing/in_child.h"
#include "sys/testing/temp_folder.h"

namespace overcap {
namespace {

constexpr uid_t kNobody = 65534, kStranger = 65533;

struct Place {
  TempFolder folder;
  SeededRandom random{1};
  std::string path = folder / "mirror";

  MirrorFolder Own() { return std::move(*MirrorFolder::OpenOwn(path)); }
  void Write(const std::string& name, const std::string& text, mode_t mode = 0600) {
    std::ofstream(path + "/" + name) << text;
    chmod((path + "/" + name).c_str(), mode);
  }
};

TEST(MirrorFolder, WhatIsReplacedIsReadBackWithNothingLeftBeside) {
  Place place;
  const MirrorFolder own = place.Own();
  ASSERT_TRUE(own.Replace("a.text", "head\n", "body", &place.random));
  ASSERT_TRUE(own.Replace("a.text", "head 2\n", "body", &place.random));
  EXPECT_EQ(own.Load("a.text", 100), "head 2\nbody");
  EXPECT_EQ(own.Head("a.text", 4), "head");
  EXPECT_EQ(own.Load("a.text", 5), std::nullopt);
  EXPECT_EQ(own.Load("b.text", 5), std::nullopt);
  own.Sweep(time(nullptr) + 3600);
  EXPECT_TRUE(own.Load("a.text", 100));
}

TEST(MirrorFolder, LinksPipesAndFilesThatOthersMayWriteAreNotBelieved) {
  Place place;
  const MirrorFolder own = place.Own();
  place.Write("real", "lie");
  ASSERT_EQ(symlink("real", (place.path + "/symbolic.text").c_str()), 0);
  ASSERT_EQ(mkfifo((place.path + "/pipe.text").c_str(), 0600), 0);
  ASSERT_EQ(mkdir((place.path + "/folder.text").c_str(), 0700), 0);
  place.Write("group.text", "lie", 0660);
  place.Write("all.text", "lie", 0602);
  for (const char* name : {"symbolic.text", "pipe.text", "folder.text", "group.text", "all.text"}) {
    EXPECT_EQ(own.Load(name, 100), std::nullopt) << name;
    EXPECT_EQ(own.Head(name, 100), std::nullopt) << name;
  }
  ASSERT_EQ(link((place.path + "/real").c_str(), (place.path + "/hard.text").c_str()), 0);
  EXPECT_EQ(own.Load("hard.text", 100), std::nullopt);
}

TEST(MirrorFolder, ALockThatIsALinkIsRefused) {
  Place place;
  const MirrorFolder own = place.Own();
  ASSERT_EQ(symlink("elsewhere", (place.path + "/a.lock").c_str()), 0);
  EXPECT_FALSE(own.TryLock("a.lock"));
  EXPECT_NE(access((place.path + "/elsewhere").c_str(), F_OK), 0);
}

TEST(MirrorFolder, AFolderThatOthersMayWriteOrALinkIsNotOnesOwn) {
  Place place;
  (void)place.Own();
  ASSERT_EQ(chmod(place.path.c_str(), 0770), 0);
  EXPECT_EQ(MirrorFolder::OpenOwn(place.path).error().code, ErrorCode::kDenied);
  ASSERT_EQ(chmod(place.path.c_str(), 0700), 0);
  ASSERT_EQ(symlink(place.path.c_str(), (place.folder / "link").c_str()), 0);
  EXPECT_FALSE(MirrorFolder::OpenOwn(place.folder / "link"));
  EXPECT_FALSE(MirrorFolder::OpenShared(place.folder / "link", {}));
  EXPECT_TRUE(MirrorFolder::OpenOwn(place.folder / "new/folder"));
}

TEST(MirrorFolder, ASharedFolderIsUsedUnlessEverybodyMayWriteInIt) {
  Place place;
  (void)place.Own();
  ASSERT_EQ(chmod(place.path.c_str(), 0777), 0);
  EXPECT_EQ(MirrorFolder::OpenShared(place.path, {}).error().code, ErrorCode::kDenied);
  ASSERT_EQ(chmod(place.path.c_str(), 02775), 0);
  const auto shared = MirrorFolder::OpenShared(place.path, {});
  ASSERT_TRUE(shared);
  EXPECT_TRUE(shared->writable());
  EXPECT_FALSE(MirrorFolder::OpenShared(place.folder / "none", {}));
}

TEST(MirrorFolder, OnlyOneHasTheLockAndItIsFreeAgainAfterwards) {
  Place place;
  const MirrorFolder own = place.Own();
  {
    auto first = own.TryLock("a.lock");
    ASSERT_TRUE(first && *first);
    const auto second = own.TryLock("a.lock");
    ASSERT_TRUE(second);
    EXPECT_FALSE(*second);
  }
  const auto third = own.TryLock("a.lock");
  EXPECT_TRUE(third && *third);
}

TEST(MirrorFolder, ABrokenLockGoesToTheNextButOnlyTheOneThatWasMeant) {
  Place place;
  const MirrorFolder own = place.Own();
  const auto hangs = own.TryLock("a.lock");
  ASSERT_TRUE(hangs && *hangs);
  const ino_t held = own.LockFile("a.lock");
  own.BreakLock("a.lock", held);
  const auto next = own.TryLock("a.lock");
  ASSERT_TRUE(next && *next);
  EXPECT_NE(own.LockFile("a.lock"), held);
  own.BreakLock("a.lock", held);  // by one that was late
  const auto third = own.TryLock("a.lock");
  ASSERT_TRUE(third);
  EXPECT_FALSE(*third);
}

TEST(MirrorFolder, SweepingTakesLeftOversOnly) {
  Place place;
  const MirrorFolder own = place.Own();
  for (const char* name : {".new-0123456789abcdef", "a.text", "a.failed", "a.lock", "other"})
    place.Write(name, "x");
  own.Sweep(time(nullptr) + 700);
  EXPECT_NE(access((place.path + "/.new-0123456789abcdef").c_str(), F_OK), 0);
  EXPECT_EQ(access((place.path + "/a.text").c_str(), F_OK), 0);
  own.Sweep(time(nullptr) + 8 * 86400);
  for (const char* name : {"a.text", "a.failed"})
    EXPECT_NE(access((place.path + "/" + name).c_str(), F_OK), 0);
  for (const char* name : {"a.lock", "other"}) EXPECT_EQ(access((place.path + "/" + name).c_str(), F_OK), 0);
}

TEST(MirrorFolder, SweepingIsForNowAndThen) {
  Place place;
  const MirrorFolder own = place.Own();
  const auto left = [&] { return access((place.path + "/.new-0123456789abcdef").c_str(), F_OK) == 0; };
  own.Sweep(time(nullptr) + 700);
  place.Write(".new-0123456789abcdef", "x");
  own.Sweep(time(nullptr) + 1200);
  EXPECT_TRUE(left());
  own.Sweep(time(nullptr) + 1400);
  EXPECT_FALSE(left());
}

// ---- between users

class MirrorUsers : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: other users: only root can become them";
    ASSERT_EQ(chmod(place_.folder.Path().c_str(), 0755), 0);
    ASSERT_EQ(mkdir(place_.path.c_str(), 0755), 0);
  }
  void Folder(uid_t owner, gid_t group, mode_t mode) {
    ASSERT_EQ(chown(place_.path.c_str(), owner, group), 0);
    ASSERT_EQ(chmod(place_.path.c_str(), mode), 0);
  }
  static std::string As(uid_t user, gid_t group, const std::function<std::string()>& body) {
    return InChild([&]() -> std::string {
      if (setgroups(0, nullptr) != 0 || setgid(group) != 0 || setuid(user) != 0) return "not permitted";
      return body();
    });
  }
  std::string LoadAs(uid_t user, gid_t group, std::vector<uid_t> trusted = {}) {
    return As(user, group, [&]() -> std::string {
      const auto shared = MirrorFolder::OpenShared(place_.path, trusted);
      return shared ? shared->Load("a.text", 100).value_or("nothing") : shared.error().message;
    });
  }
  Place place_;
};

TEST_F(MirrorUsers, MembersOfTheGroupReplaceEachOthersFilesAndShareTheLock) {
  Folder(0, 100, 02770);
  const auto write = [&] {
    const auto shared = MirrorFolder::OpenShared(place_.path, {});
    if (!shared || !shared->writable()) return std::string("cannot write");
    const auto lock = shared->TryLock("a.lock");
    if (!lock || !*lock) return lock ? std::string("busy") : lock.error().message;
    place_.random = SeededRandom(geteuid());
    const auto kept = shared->Replace("a.text", "by ", std::to_string(geteuid()), &place_.random);
    return kept ? std::string("kept") : kept.error().message;
  };
  EXPECT_EQ(As(kNobody, 100, write), "kept");
  EXPECT_EQ(As(kStranger, 100, write), "kept");
  EXPECT_EQ(LoadAs(kNobody, 100), "by 65533");
}

TEST_F(MirrorUsers, WhoMayOnlyLookReadsButCannotTakeTheLock) {
  Folder(kNobody, 100, 0755);
  EXPECT_EQ(As(kNobody, 100,
               [&]() -> std::string {
                 const auto service = MirrorFolder::OpenShared(place_.path, {});
                 const auto lock = service->TryLock("a.lock");
                 return lock && *lock && service->Replace("a.text", "", "true", &place_.random) ? "kept"
                                                                                                : "no";
               }),
            "kept");
  EXPECT_EQ(LoadAs(kStranger, 1, {kNobody}), "true");
  EXPECT_EQ(LoadAs(kStranger, 1).substr(0, 17), "the mirror folder");
  EXPECT_EQ(As(kStranger, 1,
               [&]() -> std::string {
                 const auto shared = MirrorFolder::OpenShared(place_.path, {kNobody});
                 return !shared->writable() && !shared->TryLock("a.lock") ? "only looks" : "writes";
               }),
            "only looks");
}

TEST_F(MirrorUsers, AFileOfSomebodyElseInAFolderThatOnlyItsOwnerMayWriteIsALie) {
  Folder(0, 0, 0755);
  place_.Write("a.text", "lie", 0644);
  EXPECT_EQ(LoadAs(kNobody, 100), "lie");
  ASSERT_EQ(chown((place_.path + "/a.text").c_str(), kStranger, 0), 0);
  EXPECT_EQ(LoadAs(kNobody, 100), "nothing");
  EXPECT_EQ(LoadAs(kNobody, 100, {kStranger}), "lie");
}

TEST_F(MirrorUsers, AFolderThatAnotherUserMadeBeforeIsNotOnesOwn) {
  Folder(kStranger, 0, 0700);
  EXPECT_EQ(
      As(kNobody, 100, [&]() -> std::string { return MirrorFolder::OpenOwn(place_.path) ? "own" : "no"; }),
      "no");
  Folder(kStranger, 0, 0755);
  EXPECT_EQ(
      As(kNobody, 100, [&]() -> std::string { return MirrorFolder::OpenOwn(place_.path) ? "own" : "no"; }),
      "no");
}

}  // namespace
}  // namespace overcap
