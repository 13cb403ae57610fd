// SPDX-License-Identifier: Apache-2.0
// A restore that relies on a look does what one does that looks itself.
#include <filesystem>
#include <gtest/gtest.h>
#include <random>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/text.h"
#include "snapshot/backup/seen.h"
#include "snapshot/restore/folder_look.h"
#include "snapshot/restore/testing/restore_rig.h"

namespace overcap {
namespace {

namespace fs = std::filesystem;
using Lines = std::vector<std::string>;

// Few names and values, so that entries of one state are often in the place of others in the next.
class RandomFolder {
 public:
  RandomFolder(std::string root, uint64_t seed) : root_(std::move(root)), random_(seed) {}

  void Change() {
    for (int i = 0; i < 12; ++i) ChangeOne();
  }

  void ChangeOne() {
    const std::string path = Path(), other = Path();
    std::error_code failed;
    if (Below(3) == 0) fs::remove_all(path, failed);
    if (!fs::is_directory(fs::path(path).parent_path(), failed)) {
      fs::remove_all(fs::path(path).parent_path(), failed);
      fs::create_directories(fs::path(path).parent_path(), failed);
    }
    if (failed) return;
    Make(path, other);
    if (fs::symlink_status(path, failed).type() == fs::file_type::regular && Below(4) == 0) {
      const std::string value(Below(2), 'v');
      (void)setxattr(path.c_str(), "user.kind", value.data(), value.size(), 0);
    }
    SetModeAndTime(path, static_cast<unsigned>(Below(2) == 0 ? 0700 : 0750),
                   1'600'000'000 + static_cast<int64_t>(Below(2)), 5);
  }

 private:
  uint64_t Below(uint64_t n) { return random_() % n; }
  std::string Path() {
    std::string path = root_;
    const uint64_t depth = 1 + Below(3);
    for (uint64_t i = 0; i < depth; ++i)
      path += StrCat("/", std::string(1, static_cast<char>('a' + Below(3))));
    return path;
  }

  void Make(const std::string& path, const std::string& other) {
    std::error_code failed;
    const bool there = fs::exists(fs::symlink_status(path, failed));
    if (Below(4) == 0 && there) return;  // only its attributes change
    const uint64_t kind = Below(6);
    if (there && !(kind == 0 && fs::is_directory(path, failed))) fs::remove_all(path, failed);
    if (kind == 0) {
      fs::create_directory(path, failed);
    } else if (kind == 1) {
      fs::create_symlink(StrCat("to ", Below(2)), path, failed);
    } else if (kind == 2 && fs::is_regular_file(fs::symlink_status(other, failed))) {
      fs::create_hard_link(other, path, failed);
    } else {
      PutFile(path, std::string(Below(3) * 40'000, 'c'));
    }
  }

  const std::string root_;
  std::mt19937_64 random_;
};

void ExpectEqual(const RestoreReport& a, const RestoreReport& b) {
  EXPECT_EQ(a.files, b.files);
  EXPECT_EQ(a.same_files, b.same_files);
  EXPECT_EQ(a.written_files, b.written_files);
  EXPECT_EQ(a.written_bytes, b.written_bytes);
  EXPECT_EQ(a.removed, b.removed);
  EXPECT_EQ(a.failed, 0);
  EXPECT_EQ(b.failed, 0);
}

TEST(SurveyFromLook, ARestoreThatReliesOnItDoesWhatOneDoesThatLooksItself) {
  for (uint64_t seed = 1; seed <= 80; ++seed) {
    SCOPED_TRACE(seed);
    RestoreRig rig(true);
    RandomFolder folder(rig.Source(), seed);
    fs::create_directories(rig.Source());
    folder.Change();
    const Digest before = rig.Save();
    folder.Change();
    const Digest after = rig.Save();
    RestoreRequest plain = rig.Request(before), relying = plain;
    plain.target = rig.Target() + " too";
    rig.Restored(plain);
    rig.Restored(relying);
    CompareRequest compare;
    compare.tree = before;
    compare.folder = rig.Target();
    Result<FolderLook> look = LookAtFolder(rig.repository(), compare);
    ASSERT_TRUE(look);
    ASSERT_TRUE(CanSurveyFrom(*look));
    relying.look = &*look;
    plain.tree = relying.tree = after;
    plain.remove_extra = relying.remove_extra = true;
    ExpectEqual(rig.Restored(relying), rig.Restored(plain));
    EXPECT_EQ(rig.Differences(), Lines{});
    EXPECT_EQ(CompareTrees(rig.Target(), plain.target), Lines{});
  }
}

TEST(SurveyFromLook, AFolderThatHasChangedIsNoBase) {
  RestoreRig rig;
  PutFile(rig.Source("file"), "old");
  const Digest tree = rig.Save();
  rig.Restored(rig.Request(tree));
  PutFile(rig.Target("file"), "newer");
  CompareRequest compare;
  compare.tree = tree;
  compare.folder = rig.Target();
  const Result<FolderLook> look = LookAtFolder(rig.repository(), compare);
  ASSERT_TRUE(look);
  EXPECT_FALSE(CanSurveyFrom(*look));
}

CompareRequest LookFor(const RestoreRig& rig, const Digest& tree, const Digest& next) {
  CompareRequest compare;
  compare.tree = tree;
  compare.folder = rig.Target();
  compare.seen_file = rig.Target(".overcap/seen");
  compare.next = next;
  compare.next_owners = geteuid() == 0;
  compare.next_by_cache = true;
  return compare;
}

// With odd seeds all that was just made is too young for its stamp to be believed.
void SetAge(RestoreRig* rig, uint64_t seed) {
  if (seed % 2 == 1) rig->clock().SetOffset(0);
}

TEST(LookByCache, ARestoreThatReliesOnItDoesWhatOneDoesThatLooksItself) {
  for (uint64_t seed = 1; seed <= 80; ++seed) {
    SCOPED_TRACE(seed);
    RestoreRig rig(true);
    SetAge(&rig, seed);
    RandomFolder folder(rig.Source(), seed);
    fs::create_directories(rig.Source());
    folder.Change();
    const Digest before = rig.Save();
    folder.Change();
    const Digest after = rig.Save();
    RestoreRequest plain = rig.Request(before), relying = rig.Request(before, true);
    plain.target = rig.Target() + " too";
    rig.Restored(plain);
    rig.Restored(relying);
    for (const Digest& next : {after, before, after}) {
      Result<FolderLook> look = LookAtFolder(rig.repository(), LookFor(rig, relying.tree, next));
      ASSERT_TRUE(look);
      ASSERT_TRUE(look->next_survey || next == relying.tree);
      EXPECT_TRUE(look->report.Same());
      relying.look = &*look;
      plain.tree = relying.tree = next;
      plain.remove_extra = relying.remove_extra = true;
      ExpectEqual(rig.Restored(relying), rig.Restored(plain));
    }
    fs::remove_all(rig.Target(".overcap"));
    for (const std::string& root : {rig.Target(), plain.target}) SetModeAndTime(root, 0755, 0, 0);
    EXPECT_EQ(CompareTrees(rig.Target(), plain.target), Lines{});
  }
}

TEST(LookByCache, WhateverAUserHasChangedIsNeverTakenForTheSnapshot) {
  int changed = 0;
  for (uint64_t seed = 1; seed <= 120; ++seed) {
    SCOPED_TRACE(seed);
    RestoreRig rig(true);
    rig.clock().SetOffset(0);
    RandomFolder source(rig.Source(), seed);
    fs::create_directories(rig.Source());
    source.Change();
    const Digest before = rig.Save();
    source.Change();
    const Digest after = rig.Save();
    rig.Restored(rig.Request(before, true));
    RandomFolder target(rig.Target(), seed + 1000);
    for (uint64_t i = 0; i <= seed % 3; ++i) target.ChangeOne();
    CompareRequest read = LookFor(rig, before, after);
    read.next.reset();
    read.read_all = true;
    const Result<CompareReport> truth = CompareFolder(rig.repository(), read);
    const Result<FolderLook> look = LookAtFolder(rig.repository(), LookFor(rig, before, after));
    ASSERT_TRUE(truth && look);
    if (truth->Same()) continue;
    ++changed;
    EXPECT_FALSE(look->next_survey);
    EXPECT_FALSE(look->report.Same());
  }
  EXPECT_GT(changed, 60);
}

TEST(LookByCache, ACacheThatIsNotExactProvesNothing) {
  RestoreRig rig;
  PutFile(rig.Source("file"), "old");
  const Digest before = rig.Save();
  PutFile(rig.Source("file"), "changed");
  const Digest after = rig.Save();
  rig.Restored(rig.Request(before, true));
  const std::string file = rig.Target(".overcap/seen");
  const auto folder = fs::canonical(rig.Target()).string();
  const std::optional<Seen> seen = Seen::Load(file, rig.repository().config().id, folder);
  ASSERT_TRUE(seen);
  SeenEntry root = seen->root();
  EXPECT_NE(root.flags & kSeenExact, 0U);
  for (const bool exact : {false, true}) {
    root.flags = exact ? kSeenExact : 0;
    root.stamp.ctime_ns = 0;
    SeenWriter writer(seen->began_ns(), rig.repository().config().id, folder, root);
    writer.Folder(seen->Children(0));
    ASSERT_TRUE(writer.Finish(before, file));
    const Result<FolderLook> look = LookAtFolder(rig.repository(), LookFor(rig, before, after));
    ASSERT_TRUE(look);
    EXPECT_EQ(look->next_survey.has_value(), exact);
    EXPECT_TRUE(look->report.Same());
  }
}

}  // namespace
}  // namespace overcap
