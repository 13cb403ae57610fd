// SPDX-License-Identifier: Apache-2.0
// Pages and nodes of trees: what is accepted is exactly what would have been written.
#include "inputs.h"
#include "snapshot/format/entry_rules.h"
#include "snapshot/format/testing/meta_memory.h"
#include "snapshot/format/tree_page.h"
#include "snapshot/path_order.h"

namespace overcap {
namespace {

const std::vector<std::string> kWords = {std::string(1, '\0'),
                                         "\1",
                                         "\2",
                                         "\3",
                                         "..",
                                         "/",
                                         "/..",
                                         ".",
                                         "a/",
                                         "f",
                                         "d",
                                         "l",
                                         "h",
                                         "T",
                                         "\x80\x01",
                                         "\xff\xff\xff\xff\x0f",
                                         "\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
                                         "\xa4\x03",
                                         "c",
                                         "m",
                                         "0"};

std::vector<SnapshotEntry> Sample() {
  SnapshotEntry file = FileEntry("a/b"), rich = FileEntry("a/c");
  rich.xattrs = {{"user.a", "1"}, {"user.b", ""}};
  rich.unsteady = true;
  return {FolderEntry(""),           FolderEntry("a"),        file, rich, FileEntry("d", ""),
          SymlinkEntry("e", "../f"), HardLinkEntry("g", file)};
}

std::string Page(const std::vector<SnapshotEntry>& entries) {
  PageEncoder page;
  std::string before;
  for (const SnapshotEntry& entry : entries) {
    EXPECT_TRUE(page.Add(entry, CommonPrefix(before, entry.path)));
    before = entry.path;
  }
  return page.Take();
}

TEST(SnapshotTreeFuzz, PagesAreReadOrRefused) {
  const std::vector<std::string> texts = {Page(Sample()), Page({FileEntry("x/y"), FileEntry("x/z")})};
  TreePage page;
  ForEachInput(Mutator(texts, kWords, 1).Gently(), [&](const std::string& input) {
    const auto read = DecodeTreePage(input, &page);
    if (!read) return ExpectOneLine(read.error(), ErrorCode::kCorrupt);
    const std::vector<SnapshotEntry> entries(page.begin(), page.end());
    EXPECT_EQ(Page(entries), input);
    for (size_t i = 0; i < entries.size(); ++i) {
      EXPECT_TRUE(entries[i].path.empty() || PathIsClean(entries[i].path));
      EXPECT_TRUE(i == 0 || PathBefore(entries[i - 1].path, entries[i].path));
      EXPECT_EQ(EntryProblem(entries[i]), nullptr);
    }
    return true;
  });
}

TEST(SnapshotTreeFuzz, NodesAreReadOrRefused) {
  NodeEncoder node;
  for (const char* first : {"", "a", "a/b", "b"})
    node.Add({first, Sha256Of(first), {.entries = 5, .files = 3, .bytes = 1'000}});
  ForEachInput(Mutator({node.Take(1)}, kWords, 2).Gently(), [&](const std::string& input) {
    const auto read = DecodeTreeNode(input);
    if (!read) return ExpectOneLine(read.error(), ErrorCode::kCorrupt);
    for (const TreeChild& child : read->children) node.Add(child);
    EXPECT_EQ(node.Take(read->level), input);
    return true;
  });
}

// A whole tree of which every page may be damaged: what a reader hands out can be made again as a tree.
TEST(SnapshotTreeFuzz, WhatIsReadOfADamagedTreeIsATree) {
  MetaMemory memory;
  const Digest sound = BuildTree(Sample(), &memory).value();
  std::vector<std::string> texts;
  for (const auto& [id, bytes] : memory.chunks) texts.push_back(bytes);
  ForEachInput(Mutator(texts, kWords, 4).Gently(), [&](const std::string& input) {
    // In place of the page of everything below the root folder, or of the tree itself.
    bool whole = false;
    for (const bool at_root : {true, false}) {
      const GetMeta get = [&](const Digest& id) -> Result<std::string> {
        if (at_root == (id == sound) || memory.chunks.count(id) == 0) return input;
        return memory.chunks[id];
      };
      TreeReader reader(sound, get);
      TreeBuilder builder(memory.Put());
      while (true) {
        const auto entry = reader.Next();
        if (!entry) {
          ExpectOneLine(entry.error(), ErrorCode::kCorrupt);
          break;
        }
        if (*entry == nullptr) {
          whole = true;
          break;
        }
        EXPECT_TRUE(builder.Add(**entry));
      }
      const auto diff =
          DiffTrees(sound, Sha256Of("other"), get, [](const EntryChange&) -> Result<void> { return {}; });
      if (!diff) ExpectOneLine(diff.error(), ErrorCode::kCorrupt);
      TreeVisitor visitor{.enter_meta = [](const Digest&) { return true; }, .on_data = [](const Digest&) {}};
      const auto visited = VisitTree(sound, get, visitor);
      if (!visited) ExpectOneLine(visited.error(), ErrorCode::kCorrupt);
      const auto found = FindEntry(sound, "a/b", get);
      EXPECT_EQ(found && *found ? (*found)->path : "a/b", "a/b");
    }
    return whole;
  });
}

}  // namespace
}  // namespace overcap
