// SPDX-License-Identifier: Apache-2.0
// Hard links, holes, attributes: what more there is to a file than its bytes.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "snapshot/backup/testing/backup_rig.h"
#include "snapshot/format/content_map.h"
#include "snapshot/repository/testing/sample_repository.h"

namespace overcap {
namespace {

using Contents = std::map<std::string, std::string>;

TEST(BackupLinks, AreReadOnceAndNameTheFirstInTheOrderOfTheTree) {
  BackupRig rig;
  rig.Put("m/one", TextBytes(1, 5000));
  ASSERT_EQ(link(rig.Path("m/one").c_str(), rig.Path("z").c_str()), 0);
  rig.Put("a/x", "");
  ASSERT_EQ(link(rig.Path("m/one").c_str(), rig.Path("a/two").c_str()), 0);
  rig.Put("outside", "other names of it are not here");
  ASSERT_EQ(link(rig.Path("outside").c_str(), (rig.temp / "elsewhere").c_str()), 0);

  const BackupReport report = rig.Backup();
  const auto tree = rig.Tree(report.tree);
  EXPECT_EQ(tree.at("a/two").type, SnapshotEntryType::kFile);
  EXPECT_EQ(tree.at("m/one").type, SnapshotEntryType::kHardLink);
  EXPECT_EQ(tree.at("m/one").target, "a/two");
  EXPECT_EQ(tree.at("z").target, "a/two");
  EXPECT_EQ(tree.at("z").content, tree.at("a/two").content);
  EXPECT_EQ(tree.at("outside").type, SnapshotEntryType::kFile);
  EXPECT_EQ(report.read_files, 3);
  EXPECT_EQ(report.files, 3);
  EXPECT_EQ(rig.Contents(report.tree), rig.OnDisk());

  const BackupReport same = rig.Backup();
  EXPECT_FALSE(same.snapshot);
  EXPECT_EQ(same.files, 3);
}

TEST(BackupLinks, FollowWhenTheFirstGoes) {
  BackupRig rig;
  rig.Put("a", "content");
  link(rig.Path("a").c_str(), rig.Path("b").c_str());
  link(rig.Path("a").c_str(), rig.Path("c").c_str());
  rig.Backup();
  unlink(rig.Path("a").c_str());
  const BackupReport report = rig.Backup();
  const auto tree = rig.Tree(report.tree);
  EXPECT_EQ(tree.at("b").type, SnapshotEntryType::kFile);
  EXPECT_EQ(tree.at("c").target, "b");
  EXPECT_EQ(report.read_files, 1);
}

// Data at these places of a file that is otherwise one hole.
void PutSparse(const std::string& path, int64_t size, const std::map<int64_t, std::string>& data) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT, 0644);
  ASSERT_EQ(ftruncate(fd, size), 0);
  for (const auto& [offset, bytes] : data) {
    ASSERT_EQ(pwrite(fd, bytes.data(), bytes.size(), offset), static_cast<ssize_t>(bytes.size()));
  }
  close(fd);
}

TEST(BackupHoles, AreNotRead) {
  BackupRig rig;
  PutSparse(rig.Path("sparse"), int64_t{1} << 32,
            {{65'536, "in the middle"}, {(int64_t{1} << 32) - 4096, "end"}});
  PutSparse(rig.Path("hole"), 1 << 20, {});
  PutSparse(rig.Path("small"), 20'000, {{0, "begin"}});
  const BackupReport report = rig.Backup();
  EXPECT_LT(report.read_bytes, 100'000);
  EXPECT_EQ(report.bytes, (int64_t{1} << 32) + (1 << 20) + 20'000);
  const auto tree = rig.Tree(report.tree);
  EXPECT_EQ(tree.at("sparse").size, int64_t{1} << 32);
  EXPECT_EQ(tree.at("sparse").content.kind, FileContent::Kind::kMap);
  EXPECT_EQ(rig.Content(tree.at("hole")), std::string(1 << 20, '\0'));
  std::string small(20'000, '\0');
  small.replace(0, 5, "begin");
  EXPECT_EQ(rig.Content(tree.at("small")), small);
  EXPECT_FALSE(rig.Backup().snapshot);
}

TEST(BackupHoles, BetweenRunsOfDataThatAreCutIntoManyPieces) {
  BackupRig rig;
  const std::string noise = NoiseBytes(1, 400'000);
  PutSparse(rig.Path("f"), 2'000'000, {{131'072, noise}, {1'048'576, noise}});
  std::string expected(2'000'000, '\0');
  expected.replace(131'072, noise.size(), noise);
  expected.replace(1'048'576, noise.size(), noise);
  const BackupReport report = rig.Backup();
  EXPECT_EQ(rig.Content(rig.Tree(report.tree).at("f")), expected);
  EXPECT_LT(report.new_bytes, 500'000);  // both runs are cut from their own start
}

bool HasXattrs(const BackupRig& rig) {
  return setxattr(rig.Path(".").c_str(), "user.probe", "1", 1, 0) == 0 &&
         removexattr(rig.Path(".").c_str(), "user.probe") == 0;
}

TEST(BackupXattrs, OfFilesFoldersAndTheFolderItself) {
  BackupRig rig;
  if (!HasXattrs(rig)) GTEST_SKIP() << "NOT TESTED: this file system has no user attributes";
  rig.Put("d/f", "x");
  const std::string large(3000, 'v');
  ASSERT_EQ(setxattr(rig.Path("d/f").c_str(), "user.zz", "\0b", 2, 0), 0);
  ASSERT_EQ(setxattr(rig.Path("d/f").c_str(), "user.aa", large.data(), large.size(), 0), 0);
  ASSERT_EQ(setxattr(rig.Path("d").c_str(), "user.of-folder", "", 0, 0), 0);
  ASSERT_EQ(setxattr(rig.Path(".").c_str(), "user.of-root", "r", 1, 0), 0);
  const auto tree = rig.Tree(rig.Backup().tree);
  using Xattrs = std::vector<ExtendedAttribute>;
  EXPECT_EQ(tree.at("d/f").xattrs, (Xattrs{{"user.aa", large}, {"user.zz", std::string("\0b", 2)}}));
  EXPECT_EQ(tree.at("d").xattrs, (Xattrs{{"user.of-folder", ""}}));
  EXPECT_EQ(tree.at("").xattrs, (Xattrs{{"user.of-root", "r"}}));

  EXPECT_FALSE(rig.Backup().snapshot);
  rig.Put("d/g", "so that a tree is written from the cache");
  const auto second = rig.Tree(rig.Backup().tree);
  EXPECT_EQ(second.at("d/f").xattrs, tree.at("d/f").xattrs);
  EXPECT_EQ(second.at("").xattrs, tree.at("").xattrs);

  ASSERT_EQ(removexattr(rig.Path("d").c_str(), "user.of-folder"), 0);
  ASSERT_EQ(setxattr(rig.Path("d/f").c_str(), "user.zz", "new", 3, 0), 0);
  const auto third = rig.Tree(rig.Backup().tree);
  EXPECT_TRUE(third.at("d").xattrs.empty());
  EXPECT_EQ(third.at("d/f").xattrs[1].value, "new");
}

TEST(BackupXattrs, AccessListsAreAmongThem) {
  BackupRig rig;
  rig.Put("d/f", "x");
  if (access("/usr/bin/setfacl", X_OK) != 0) GTEST_SKIP() << "NOT TESTED: there is no setfacl";
  RunProgram({"/usr/bin/setfacl", "-m", "u:12345:rw", rig.Path("d/f")}, rig.temp.Path());
  RunProgram({"/usr/bin/setfacl", "-d", "-m", "g:54321:rx", rig.Path("d")}, rig.temp.Path());
  const auto tree = rig.Tree(rig.Backup().tree);
  if (tree.at("d/f").xattrs.empty()) GTEST_SKIP() << "NOT TESTED: this file system has no access lists";
  EXPECT_EQ(tree.at("d/f").xattrs[0].name, "system.posix_acl_access");
  EXPECT_EQ(tree.at("d").xattrs.at(0).name, "system.posix_acl_default");
}

}  // namespace
}  // namespace overcap
