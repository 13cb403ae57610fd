// SPDX-License-Identifier: Apache-2.0
#include "snapshot/tree.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace overcap {
namespace {

TreeEntry Leaf(EntryKind kind, const std::string& path, std::string_view content) {
  return TreeEntry{path, kind, static_cast<int64_t>(content.size()), Sha256Of(content)};
}
TreeEntry Sub(const std::string& path) {
  return TreeEntry{path, EntryKind::kFolder, 0, {}};
}

// The test vector of docs/formats/code-store.md.
std::vector<TreeEntry> Vector() {
  return {Leaf(EntryKind::kFile, "a b", "hello\n"), Sub("bin"), Leaf(EntryKind::kExecutable, "bin/run", ""),
          Leaf(EntryKind::kLink, "bin-link", "bin/run"), Sub("empty")};
}
constexpr char kVectorId[] = "96706257c026a4f4d3b56c152be4061609b6da37f10e503f3e05285b14009eed";

TEST(Tree, HasTheIdOfTheFormatDocument) {
  EXPECT_EQ(Sha256Of(EncodeTree(Vector())).Hex(), kVectorId);
}

TEST(Tree, ReadsBackWhatItWrote) {
  const Result<std::vector<TreeEntry>> entries = DecodeTree(EncodeTree(Vector()), "t");
  ASSERT_TRUE(entries) << entries.error().message;
  EXPECT_EQ(*entries, Vector());
}

TEST(Tree, OrdersAFolderRightBeforeItsContent) {
  std::vector<std::string> paths = {"a.b", "a", "a/b", "a/b/c", "a-b", "a/\xff", "b", "a\x01"};
  std::sort(paths.begin(), paths.end(), PathBefore);
  EXPECT_EQ(paths, (std::vector<std::string>{"a", "a/b", "a/b/c", "a/\xff", "a\x01", "a-b", "a.b", "b"}));
}

TEST(Tree, RefusesWhatNoFolderCanBe) {
  const std::vector<std::vector<TreeEntry>> bad = {
      {Sub("/etc")},
      {Sub("..")},
      {Sub("a"), Sub("a/..")},
      {Sub("a"), Sub("a/./b")},
      {Sub("a"), Sub("a//b")},
      {Sub("a/")},
      {Sub("")},
      {Sub("b"), Sub("a")},
      {Sub("a"), Sub("a")},
      {Leaf(EntryKind::kFile, "a/b", "x")},
      {Leaf(EntryKind::kLink, "a", "/etc"), Leaf(EntryKind::kFile, "a/passwd", "x")},
      {Sub("a"), Leaf(EntryKind::kFile, "a-", "x"), Sub("a/b")},
  };
  for (const std::vector<TreeEntry>& entries : bad) {
    const Result<std::vector<TreeEntry>> read = DecodeTree(EncodeTree(entries), "t");
    ASSERT_FALSE(read) << entries.back().path;
    EXPECT_EQ(read.error().code, ErrorCode::kCorrupt);
  }
}

TEST(Tree, NeverReadsTwoTextsAsTheSameTree) {
  const std::string text = EncodeTree(Vector());
  for (size_t size = 0; size < text.size(); ++size) {
    const Result<std::vector<TreeEntry>> read = DecodeTree(text.substr(0, size), "t");
    if (!read) continue;
    EXPECT_EQ(EncodeTree(*read), text.substr(0, size));  // cut between two entries
  }
  for (size_t at = 0; at < text.size(); ++at) {
    std::string flipped = text;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x20);
    const Result<std::vector<TreeEntry>> read = DecodeTree(flipped, "t");
    if (!read) continue;
    EXPECT_EQ(EncodeTree(*read), flipped);
  }
}

}  // namespace
}  // namespace overcap
