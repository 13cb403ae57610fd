// SPDX-License-Identifier: Apache-2.0
// Trees that somebody made to do harm, and folders that change under a restore.
#include <algorithm>
#include <fcntl.h>
#include <filesystem>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "snapshot/restore/testing/restore_rig.h"
#include "snapshot/restore/wanted_tree.h"

namespace overcap {
namespace {

namespace fs = std::filesystem;

class RestoreHostileTest : public testing::Test {
 protected:
  static SnapshotEntry Folder(const std::string& path) {
    SnapshotEntry entry;
    entry.path = path;
    entry.type = SnapshotEntryType::kFolder;
    entry.mode = 0755;
    return entry;
  }
  SnapshotEntry File(const std::string& path, const std::string& bytes) {
    SnapshotEntry entry;
    entry.path = path;
    entry.mode = 0644;
    entry.size = static_cast<int64_t>(bytes.size());
    entry.content = rig_.PutContent(bytes);
    return entry;
  }
  static SnapshotEntry Link(const std::string& path, const std::string& target) {
    SnapshotEntry entry;
    entry.path = path;
    entry.type = SnapshotEntryType::kSymlink;
    entry.mode = 0777;
    entry.target = target;
    return entry;
  }

  RestoreRig rig_;
};

// A page as bytes, without what a builder would refuse.
std::string Page(const std::vector<std::pair<char, std::string>>& entries) {
  std::string page = "T";
  page += '\0';
  page += static_cast<char>(entries.size());
  std::string before;
  for (const auto& [type, path] : entries) {
    const size_t shared = static_cast<size_t>(
        std::mismatch(path.begin(), path.end(), before.begin(), before.end()).first - path.begin());
    page += static_cast<char>(shared);
    page += static_cast<char>(path.size() - shared);
    page += path.substr(shared);
    before = path;
    page += type;
    page += std::string("\xed\x03\0\0\0\0\0", 7);  // mode 0755, root, 1970, no flags
    if (type == 'f')
      page += std::string(
          "\0"
          "0",
          2);
  }
  return page;
}

Result<WantedTree> LoadPage(const std::string& page, const std::vector<std::string>& paths = {}) {
  const GetMeta get = [&](const Digest&) -> Result<std::string> { return page; };
  return WantedTree::Load(Sha256Of(page), {paths, ".overcap"}, get);
}

TEST_F(RestoreHostileTest, APlainPageIsRead) {
  const Result<WantedTree> tree = LoadPage(Page({{'d', ""}, {'d', "a"}, {'f', "a/b"}}));
  ASSERT_TRUE(tree) << tree.error().message;
  EXPECT_EQ(tree->size(), 3u);
  EXPECT_EQ(tree->Path(2), "a/b");
}

TEST_F(RestoreHostileTest, PathsThatLeaveTheFolderAreRefused) {
  for (const std::string path : {"..", "../x", "a/../../x", "/etc/passwd", ".", "a/./b", "a//b", "a/", "/"}) {
    const Result<WantedTree> tree = LoadPage(Page({{'d', ""}, {'d', "a"}, {'f', path}}));
    ASSERT_FALSE(tree) << path;
    EXPECT_EQ(tree.error().code, ErrorCode::kCorrupt) << path;
  }
}

TEST_F(RestoreHostileTest, EntriesInWhatIsNoFolderAreRefused) {
  for (const auto& entries :
       std::vector<std::vector<std::pair<char, std::string>>>{{{'d', ""}, {'f', "a"}, {'f', "a/b"}},
                                                              {{'d', ""}, {'f', "a/b"}},
                                                              {{'d', ""}, {'f', "b"}, {'f', "a"}},
                                                              {{'d', ""}, {'f', "a"}, {'f', "a"}},
                                                              {{'d', ""}, {'d', "a"}, {'f', "a"}},
                                                              {{'f', ""}},
                                                              {{'d', "a"}}}) {
    EXPECT_FALSE(LoadPage(Page(entries)));
  }
}

TEST_F(RestoreHostileTest, WhatIsOvercapsOwnIsNotOverwritten) {
  PutFile(rig_.Target(".overcap/workspace.json"), "mine");
  const Digest tree =
      rig_.PutTree({Folder(".overcap"), File(".overcap/workspace.json", "yours"), File("x", "x")});
  const Result<RestoreReport> report = Restore(rig_.repository(), rig_.Request(tree));
  ASSERT_TRUE(report);
  EXPECT_EQ(report->failed, 1);
  EXPECT_EQ(Describe(rig_.Target()).at(".overcap/workspace.json"), "file mine");
  EXPECT_EQ(Describe(rig_.Target()).at("x"), "file x");
}

TEST_F(RestoreHostileTest, ALinkInTheTargetIsNeverFollowed) {
  fs::create_directory(rig_.temp() / "outside");
  fs::create_directory(rig_.Target());
  fs::create_directory_symlink(rig_.temp() / "outside", rig_.Target("a"));
  PutFile(rig_.temp() / "victim", "precious");
  fs::create_symlink(rig_.temp() / "victim", rig_.Target("b"));
  rig_.Restored(rig_.Request(rig_.PutTree({Folder("a"), File("a/file", "x"), File("b", "y")})));
  EXPECT_TRUE(fs::is_empty(rig_.temp() / "outside"));
  EXPECT_EQ(Describe(rig_.temp().Path()).at("victim"), "file precious");
  EXPECT_EQ(Describe(rig_.Target()).at("a/file"), "file x");
}

TEST_F(RestoreHostileTest, AFolderThatBecomesALinkMeanwhileIsNotFollowed) {
  fs::create_directory(rig_.temp() / "outside");
  std::vector<SnapshotEntry> entries = {Folder("a")};
  for (int i = 100; i < 400; ++i) entries.push_back(File("a/" + std::to_string(i), NoiseOf(2000, i)));
  const Digest tree = rig_.PutTree(entries);
  RestoreRequest request = rig_.Request(tree);
  std::atomic<bool> swapped = false;
  request.progress = [&](const RestoreProgress&) {  // after the first file, from the thread that wrote it
    if (swapped.exchange(true)) return;
    rename(rig_.Target("a").c_str(), (rig_.temp() / "moved").c_str());
    (void)symlink((rig_.temp() / "outside").c_str(), rig_.Target("a").c_str());
  };
  const Result<RestoreReport> report = Restore(rig_.repository(), request);
  ASSERT_TRUE(report);
  EXPECT_TRUE(swapped);
  EXPECT_TRUE(fs::is_empty(rig_.temp() / "outside"));
}

TEST_F(RestoreHostileTest, LinksThatPointOutsideAreOnlyLinks) {
  const Digest tree = rig_.PutTree({Link("a", "/etc"), Link("b", "../../.."), File("c", "x")});
  rig_.Restored(rig_.Request(tree));
  EXPECT_EQ(Describe(rig_.Target()).at("a"), "link /etc");
  EXPECT_EQ(Describe(rig_.Target()).at("b"), "link ../../..");
}

TEST_F(RestoreHostileTest, AHardLinkToNothingIsAFileOfItsOwn) {
  SnapshotEntry link = File("b", "content");
  link.type = SnapshotEntryType::kHardLink;
  link.target = "a";
  SnapshotEntry link2 = link;
  link2.path = "c";
  const Digest tree = rig_.PutTree({File("a", "content"), link, link2});
  RestoreRequest request = rig_.Request(tree);
  request.paths = {"b", "c"};
  rig_.Restored(request);
  EXPECT_EQ(Describe(rig_.Target()).at("b"), "file content");
  EXPECT_EQ(fs::hard_link_count(rig_.Target("c")), 2u);
}

TEST_F(RestoreHostileTest, ANameThatIsTooLongHarmsOnlyItself) {
  const Digest tree = rig_.PutTree({Folder(std::string(300, 'd')), File(std::string(300, 'd') + "/in", "x"),
                                    File(std::string(300, 'n'), "x"), File("ok", "fine")});
  const Result<RestoreReport> report = Restore(rig_.repository(), rig_.Request(tree));
  ASSERT_TRUE(report);
  EXPECT_EQ(report->failed, 3);
  EXPECT_EQ(Describe(rig_.Target()).at("ok"), "file fine");
}

TEST_F(RestoreHostileTest, ASizeThatTheContentDoesNotHaveIsDamage) {
  SnapshotEntry lies = File("lies", "twelve bytes");
  lies.size = 5'000'000;
  SnapshotEntry no_map = File("no map", "twelve bytes");
  no_map.content.kind = FileContent::Kind::kMap;
  no_map.size = int64_t{1} << 50;
  const Digest tree = rig_.PutTree({lies, no_map, File("ok", "fine")});
  const Result<RestoreReport> report = Restore(rig_.repository(), rig_.Request(tree));
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->failed, 2);
  EXPECT_EQ(Describe(rig_.Target()).size(), 1u);
}

}  // namespace
}  // namespace overcap
