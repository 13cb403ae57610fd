// SPDX-License-Identifier: Apache-2.0
#include "snapshot/backup/scan.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "snapshot/backup/long_path.h"
#include "snapshot/backup/tree_order.h"
#include "snapshot/backup/xattrs.h"
#include "snapshot/path_order.h"
#include "snapshot/testing/sample_folder.h"
#include "sys/testing/temp_folder.h"

namespace overcap {
namespace {

std::vector<std::string> PathsInOrder(Scan* scan) {
  std::vector<std::string> paths;
  TreeOrder order(scan);
  order.Next();  // the root
  for (TreeOrder::Item item = order.Next(); item.entry != nullptr; item = order.Next()) {
    paths.push_back(item.folder->PathOf(*item.entry));
  }
  return paths;
}

TEST(Scan, FindsTheSameInTheSameOrderWithAnyNumberOfThreads) {
  TempFolder temp;
  for (int i = 0; i < 300; ++i) PutFile(temp / StrCat("d", i % 7, "/e", i % 13, "/f", i), "x");
  for (const char* name : {"d1.x", "d1-x", "d1/e1.x", "\xff", " ", "d1/e1/\x01"}) PutFile(temp / name, "x");
  ScanRequest request;
  request.folder = temp.Path();
  const auto one = ScanFolder(request);
  ASSERT_TRUE(one);
  const std::vector<std::string> paths = PathsInOrder(one->get());
  EXPECT_EQ(paths.size(), Describe(temp.Path()).size());
  for (size_t i = 1; i < paths.size(); ++i) EXPECT_TRUE(PathBefore(paths[i - 1], paths[i])) << paths[i];
  request.threads = 8;
  for (int round = 0; round < 20; ++round) {
    const auto many = ScanFolder(request);
    ASSERT_TRUE(many);
    ASSERT_EQ(PathsInOrder(many->get()), paths);
  }
}

TEST(Scan, ReadsLinksAndLeavesFilesToBeRead) {
  TempFolder temp;
  PutFile(temp / "f", "content");
  ASSERT_EQ(symlink("f", (temp / "l").c_str()), 0);
  ScanRequest request;
  request.folder = temp.Path();
  const auto scan = ScanFolder(request);
  const std::vector<ScannedEntry>& entries = (*scan)->top().entries;
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].fate, EntryFate::kRead);
  EXPECT_EQ(entries[0].seen.stamp.size, 7);
  EXPECT_EQ(entries[1].fate, EntryFate::kNew);
  EXPECT_EQ(entries[1].seen.target, "f");
  EXPECT_EQ(entries[1].seen.stamp.mode, 0777U);
}

TEST(Scan, EndsWhenItIsStopped) {
  TempFolder temp;
  PutFile(temp / "a/b/c", "x");
  const std::atomic<bool> stop = true;
  ScanRequest request;
  request.folder = temp.Path();
  request.stop = &stop;
  request.threads = 4;
  const auto scan = ScanFolder(request);
  ASSERT_FALSE(scan);
  EXPECT_EQ(scan.error().code, ErrorCode::kConflict);
}

TEST(OpenBelow, FollowsNoLinkOnTheWay) {
  TempFolder temp;
  PutFile(temp / "real/f", "x");
  ASSERT_EQ(symlink("real", (temp / "link").c_str()), 0);
  const Fd root(open(temp.Path().c_str(), O_RDONLY | O_DIRECTORY));
  EXPECT_TRUE(OpenBelow(root.Get(), "real/f", O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(OpenBelow(root.Get(), "link/f", O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(OpenBelow(root.Get(), "real/../real/../../x", O_RDONLY | O_CLOEXEC));
  EXPECT_TRUE(OpenBelow(root.Get(), "", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

TEST(Xattrs, ThatTheMachineKeepsForItselfAreNotPartOfASnapshot) {
  for (const char* name : {"user.x", "system.posix_acl_access", "system.posix_acl_default",
                           "security.capability", "trusted.x"}) {
    EXPECT_TRUE(KeepsXattr(name)) << name;
  }
  for (const char* name : {"security.selinux", "security.ima", "trusted.overlay.opaque", "system.nfs4_acl"}) {
    EXPECT_FALSE(KeepsXattr(name)) << name;
  }
}

TEST(ProblemText, IsWhatPeopleRead) {
  EXPECT_EQ(ProblemText(EACCES), "permission denied");
  EXPECT_EQ(ProblemText(EIO), "input/output error");
}

}  // namespace
}  // namespace overcap
