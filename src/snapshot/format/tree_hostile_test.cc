// SPDX-License-Identifier: Apache-2.0
// Trees that somebody made to do harm: whatever they say, they are refused before an entry is handed out.
#include <gtest/gtest.h>

#include "snapshot/format/block_codec.h"
#include "snapshot/format/bytes.h"
#include "snapshot/format/testing/meta_memory.h"
#include "snapshot/format/tree_limits.h"
#include "snapshot/format/tree_page.h"
#include "snapshot/path_order.h"

namespace overcap {
namespace {

using Entries = std::vector<SnapshotEntry>;

// A page of any entries, without a check.
TreeChild PutPage(const Entries& entries, MetaMemory* memory) {
  PageEncoder page;
  std::string before;
  for (const SnapshotEntry& entry : entries) {
    page.Add(entry, CommonPrefix(before, entry.path));
    before = entry.path;
  }
  TreeChild child{.first = page.first(), .id = {}, .totals = page.totals()};
  child.id = memory->Put()(page.Take()).value();
  return child;
}

TreeChild PutNode(int level, const std::vector<TreeChild>& children, MetaMemory* memory) {
  NodeEncoder node;
  for (const TreeChild& child : children) node.Add(child);
  TreeChild above{.first = node.first(), .id = {}, .totals = node.totals()};
  above.id = memory->Put()(node.Take(level)).value();
  return above;
}

// "" when the tree is read to its end; otherwise how it was refused, before anything of the page was given
// out.
std::string Refusal(const Digest& tree, MetaMemory* memory) {
  TreeReader reader(tree, memory->Get());
  while (true) {
    const auto entry = reader.Next();
    if (entry && *entry == nullptr) return "";
    if (entry) continue;
    EXPECT_EQ(entry.error().code, ErrorCode::kCorrupt);
    EXPECT_FALSE(reader.Next());  // and stays refused
    EXPECT_FALSE(reader.Seek(""));
    return entry.error().message;
  }
}
std::string Refusal(const Entries& page) {
  MetaMemory memory;
  return Refusal(PutPage(page, &memory).id, &memory);
}
std::string RefusalOfTwoPages(const Entries& first, const Entries& second) {
  MetaMemory memory;
  const std::vector<TreeChild> pages = {PutPage(first, &memory), PutPage(second, &memory)};
  return Refusal(PutNode(1, pages, &memory).id, &memory);
}

bool Says(const std::string& refusal, std::string_view words) {
  return refusal.find(words) != std::string::npos;
}

TEST(HostileTree, PathsThatLeadOutAreRefused) {
  const auto nul = std::string("a\0b", 3);
  for (const std::string& path :
       {std::string(".."), std::string("."), std::string("../x"), std::string("/etc"), std::string("//"),
        std::string("x/"), std::string("x//y"), std::string("x/../y"), std::string("x/./y"),
        std::string("x/.."), nul, std::string("x/") + nul, std::string(kPathMost + 1, 'x')}) {
    EXPECT_NE(Refusal({FolderEntry(""), FileEntry(path)}), "") << path.substr(0, 20);
    EXPECT_NE(Refusal({FolderEntry(""), FolderEntry("x"), FileEntry("x/!"), FileEntry(path)}), "")
        << path.substr(0, 20);
    EXPECT_NE(RefusalOfTwoPages({FolderEntry(""), FolderEntry("x")}, {FileEntry(path)}), "")
        << path.substr(0, 20);
  }
  EXPECT_EQ(
      Refusal({FolderEntry(""), FileEntry("..."), FileEntry(".x"), FolderEntry("x"), FileEntry("x/..y")}),
      "");
}

TEST(HostileTree, TheRootIsAFolderAndComesFirst) {
  SnapshotEntry file = FileEntry("");
  EXPECT_TRUE(Says(Refusal({file}), "root"));
  EXPECT_TRUE(Says(Refusal({SymlinkEntry("", "/etc")}), "root"));
  EXPECT_NE(Refusal({FileEntry("a")}), "");
  EXPECT_NE(Refusal({FolderEntry(""), FolderEntry("")}), "");
  EXPECT_EQ(Refusal({FolderEntry("")}), "");
}

TEST(HostileTree, EntriesOutOfOrderAreRefused) {
  EXPECT_TRUE(Says(Refusal({FolderEntry(""), FileEntry("b"), FileEntry("a")}), "order"));
  EXPECT_TRUE(Says(Refusal({FolderEntry(""), FileEntry("a"), FileEntry("a")}), "order"));
  EXPECT_TRUE(Says(Refusal({FolderEntry(""), FolderEntry("a"), FileEntry("a-"), FileEntry("a/b")}), "order"));
  EXPECT_NE(RefusalOfTwoPages({FolderEntry(""), FileEntry("a"), FileEntry("c")}, {FileEntry("b")}), "");
  EXPECT_NE(RefusalOfTwoPages({FolderEntry(""), FileEntry("b")}, {FileEntry("b")}), "");
  EXPECT_NE(RefusalOfTwoPages({FolderEntry("")}, {FolderEntry("")}), "");
}

TEST(HostileTree, WhatIsInNoFolderIsRefused) {
  const Entries not_folders = {FileEntry("a"), SymlinkEntry("a", "/etc"), HardLinkEntry("a", FileEntry("A"))};
  for (const SnapshotEntry& above : not_folders) {
    EXPECT_NE(Refusal({FolderEntry(""), FileEntry("A"), above, FileEntry("a/b")}), "");
    EXPECT_TRUE(
        Says(RefusalOfTwoPages({FolderEntry(""), FileEntry("A"), above}, {FileEntry("a/b")}), "no folder"));
  }
  EXPECT_TRUE(Says(Refusal({FolderEntry(""), FileEntry("a/b")}), "not there"));
  EXPECT_TRUE(Says(Refusal({FolderEntry(""), FolderEntry("a"), FileEntry("a/b/c")}), "not there"));
  EXPECT_TRUE(Says(Refusal({FolderEntry(""), FolderEntry("a"), FileEntry("ab/c")}), "not there"));
  EXPECT_TRUE(Says(RefusalOfTwoPages({FolderEntry(""), FolderEntry("a")}, {FileEntry("ab/c")}), "no folder"));
  EXPECT_EQ(RefusalOfTwoPages({FolderEntry(""), FolderEntry("a"), FileEntry("a/b")}, {FileEntry("a/c")}), "");
}

TEST(HostileTree, AJumpOverTheFolderAboveDoesNotHideThatItIsNone) {
  MetaMemory memory;
  const std::vector<TreeChild> pages = {PutPage({FolderEntry("")}, &memory),
                                        PutPage({SymlinkEntry("a", "/etc")}, &memory),
                                        PutPage({FileEntry("a/passwd")}, &memory)};
  const Digest tree = PutNode(1, pages, &memory).id;
  TreeReader reader(tree, memory.Get());
  const auto sought = reader.Seek("a/passwd");
  ASSERT_FALSE(sought);
  EXPECT_EQ(sought.error().code, ErrorCode::kCorrupt);
  const std::vector<TreeChild> fewer = {pages[0], pages[1]};
  const Digest before = PutNode(1, fewer, &memory).id;
  int told = 0;
  const auto diff = DiffTrees(before, tree, memory.Get(), [&](const EntryChange&) -> Result<void> {
    ++told;
    return {};
  });
  EXPECT_FALSE(diff);
  EXPECT_EQ(told, 0);
}

TEST(HostileTree, AHardLinkLeadsToAnEarlierFileThatIsTheSame) {
  const SnapshotEntry file = FileEntry("a");
  EXPECT_EQ(Refusal({FolderEntry(""), file, HardLinkEntry("b", file)}), "");
  EXPECT_EQ(RefusalOfTwoPages({FolderEntry(""), file}, {HardLinkEntry("b", file)}), "");
  const auto linked = [&](const Entries& first, const SnapshotEntry& link) {
    Entries one = first;
    one.push_back(link);
    return std::pair(Refusal(one), RefusalOfTwoPages(first, {link}));
  };
  SnapshotEntry other_size = HardLinkEntry("b", file), other_mode = other_size, to_nothing = other_size,
                to_root = other_size;
  other_size.size += 1;
  other_mode.mode = 0600;
  to_nothing.target = "aa";
  to_root.target = "";
  for (const SnapshotEntry& link : {other_size, other_mode, to_nothing, to_root}) {
    const auto [in_page, across] = linked({FolderEntry(""), file}, link);
    EXPECT_NE(in_page, "");
    EXPECT_NE(across, "");
  }
  SnapshotEntry folder = FolderEntry("a"), symlink = SymlinkEntry("a", "x");
  for (const SnapshotEntry& first : {folder, symlink}) {
    SnapshotEntry link = HardLinkEntry("b", first);
    const auto [in_page, across] = linked({FolderEntry(""), first}, link);
    EXPECT_NE(in_page, "");
    EXPECT_NE(across, "");
  }
  EXPECT_NE(Refusal({FolderEntry(""), HardLinkEntry("a", FileEntry("b")), FileEntry("b")}), "");
  EXPECT_NE(Refusal({FolderEntry(""), file, HardLinkEntry("b", file),
                     HardLinkEntry("c", HardLinkEntry("b", file))}),
            "");
  SnapshotEntry outside = HardLinkEntry("b", file);
  outside.target = "../a";
  EXPECT_NE(Refusal({FolderEntry(""), file, outside}), "");
}

TEST(HostileTree, ManyHardLinksInAnyOrderReadEachPageOnceAndAWrongOneAmongThemIsFound) {
  Entries entries = ManyEntries(20, 100), links;
  for (const SnapshotEntry& entry : entries) {
    if (entry.type == SnapshotEntryType::kFile) links.push_back(entry);
  }
  for (size_t i = 0; i < links.size(); ++i) std::swap(links[i], links[i * 7'919 % links.size()]);
  entries.push_back(FolderEntry("links"));
  for (size_t i = 0; i < links.size(); ++i) {
    entries.push_back(HardLinkEntry("links/" + std::to_string(10'000 + i), links[i]));
  }
  MetaMemory memory;
  const Digest tree = BuildTree(entries, &memory).value();
  const auto pages = static_cast<int64_t>(memory.chunks.size());
  EXPECT_EQ(Refusal(tree, &memory), "");
  EXPECT_LE(memory.gets, 3 * pages);
  entries.back().mode ^= 1;
  EXPECT_TRUE(Says(Refusal(BuildTree(entries, &memory).value(), &memory), "no such file"));
}

TEST(HostileTree, FieldsThatCannotBeAreRefused) {
  const auto refused = [](const std::function<void(SnapshotEntry*)>& change,
                          SnapshotEntry entry = FileEntry("a")) {
    change(&entry);
    return !Refusal({FolderEntry(""), entry}).empty();
  };
  EXPECT_FALSE(refused([](SnapshotEntry*) {}));
  EXPECT_TRUE(refused([](SnapshotEntry* entry) { entry->mode = 010000; }));
  EXPECT_TRUE(refused([](SnapshotEntry* entry) { entry->size = 0; }));
  EXPECT_TRUE(refused([](SnapshotEntry* entry) { entry->size = -1; }));
  EXPECT_TRUE(refused([](SnapshotEntry* entry) { entry->size = kChunkMost + 1; }));
  EXPECT_TRUE(refused([](SnapshotEntry* entry) { entry->content.kind = FileContent::Kind::kEmpty; }));
  EXPECT_TRUE(
      refused([](SnapshotEntry* entry) { entry->content.kind = static_cast<FileContent::Kind>('x'); }));
  EXPECT_TRUE(refused([](SnapshotEntry* entry) { entry->type = static_cast<SnapshotEntryType>('b'); }));
  EXPECT_TRUE(refused([](SnapshotEntry* entry) { entry->xattrs = {{"b", ""}, {"a", ""}}; }));
  EXPECT_TRUE(refused([](SnapshotEntry* entry) { entry->xattrs = {{"a", ""}, {"a", ""}}; }));
  EXPECT_TRUE(refused([](SnapshotEntry* entry) { entry->xattrs = {{"", "x"}}; }));
  EXPECT_TRUE(refused([](SnapshotEntry* entry) { entry->xattrs = {{std::string(256, 'a'), ""}}; }));
  EXPECT_TRUE(refused([](SnapshotEntry* entry) { entry->xattrs = {{"a", std::string(65'537, 'a')}}; }));
  EXPECT_TRUE(refused([](SnapshotEntry* entry) { entry->target.clear(); }, SymlinkEntry("a", "b")));
  EXPECT_TRUE(refused([](SnapshotEntry* entry) { entry->target.push_back('\0'); }, SymlinkEntry("a", "b")));
  EXPECT_TRUE(refused([](SnapshotEntry* entry) { entry->mode = 0644; }, SymlinkEntry("a", "b")));
  EXPECT_TRUE(refused([](SnapshotEntry* entry) { entry->unsteady = true; }, FolderEntry("a")));
}

TEST(HostileTree, NodesThatSayWhatIsNotSoAreRefused) {
  MetaMemory memory;
  const TreeChild first = PutPage({FolderEntry(""), FileEntry("a")}, &memory),
                  second = PutPage({FileEntry("b")}, &memory);
  EXPECT_EQ(Refusal(PutNode(1, {first, second}, &memory).id, &memory), "");
  const auto with = [&](const std::function<void(TreeChild*)>& change) {
    TreeChild wrong = second;
    change(&wrong);
    return Refusal(PutNode(1, {first, wrong}, &memory).id, &memory);
  };
  EXPECT_TRUE(Says(with([](TreeChild* child) { child->first = "bb"; }), "begins with another"));
  EXPECT_TRUE(Says(with([](TreeChild* child) { child->first = "../b"; }), "not allowed"));
  EXPECT_TRUE(Says(with([](TreeChild* child) { child->first = ""; }), "order"));
  EXPECT_TRUE(Says(with([](TreeChild* child) { child->first = "a"; }), "behind the next"));
  EXPECT_TRUE(Says(with([](TreeChild* child) { child->totals.entries = 2; }), "as much"));
  EXPECT_TRUE(Says(with([](TreeChild* child) { child->totals.files = 0; }), "as much"));
  EXPECT_TRUE(Says(with([](TreeChild* child) { child->totals.bytes = 1 << 30; }), "as much"));
  EXPECT_NE(with([](TreeChild* child) { child->totals.bytes = -1; }), "");
  EXPECT_NE(with([](TreeChild* child) { child->totals.bytes = INT64_MAX; }), "");
  EXPECT_NE(with([](TreeChild* child) { child->totals.entries = INT64_MAX; }), "");
  EXPECT_TRUE(Says(Refusal(PutNode(2, {first, second}, &memory).id, &memory), "level"));
  EXPECT_NE(Refusal(PutNode(kTreeLevels + 1, {first, second}, &memory).id, &memory), "");
  EXPECT_NE(Refusal(PutNode(1, {second}, &memory).id, &memory), "");
  EXPECT_NE(Refusal(PutNode(1, {}, &memory).id, &memory), "");
}

TEST(HostileTree, ANodeThatLeadsToItselfEnds) {
  MetaMemory memory;
  const TreeChild page = PutPage({FolderEntry("")}, &memory);
  const std::string bytes = memory.chunks[PutNode(5, {page}, &memory).id];
  int reads = 0;
  const GetMeta get = [&](const Digest&) -> Result<std::string> {
    ++reads;
    return bytes;
  };
  EXPECT_FALSE(TreeReader(page.id, get).Next());
  EXPECT_FALSE(FindEntry(page.id, "a", get));
  TreeVisitor visitor{.enter_meta = [](const Digest&) { return true; }, .on_data = [](const Digest&) {}};
  EXPECT_FALSE(VisitTree(page.id, get, visitor));
  EXPECT_LT(reads, 10);
}

TEST(HostileTree, PagesThatPromiseOrHoldTooMuchAreRefused) {
  MetaMemory memory;
  for (const uint64_t count : {uint64_t{0}, uint64_t{2}, uint64_t{4097}, uint64_t{1} << 62}) {
    for (const char level : {'\0', '\1'}) {
      std::string bytes = {'T', level};
      AppendVarint(&bytes, count);
      bytes += std::string(40, '\0');
      EXPECT_NE(Refusal(memory.Put()(bytes).value(), &memory), "");
    }
  }
  Entries many = {FolderEntry("")};
  for (size_t i = 0; i < kPageEntries; ++i) many.push_back(FileEntry(std::to_string(100'000 + i)));
  EXPECT_NE(Refusal(many), "");
  many.pop_back();
  EXPECT_EQ(Refusal(many), "");
}

TEST(HostileTree, FewBytesThatStandForManyLongPathsAreRefused) {
  Entries deep = {FolderEntry("")};
  const std::string name(60'000, 'x');
  deep.push_back(FolderEntry(name));
  for (int i = 0; i < 100; ++i) deep.push_back(FileEntry(name + "/" + std::to_string(100 + i)));
  EXPECT_TRUE(Says(Refusal(deep), "longer than a page"));
  MetaMemory memory;
  EXPECT_EQ(Refusal(BuildTree(deep, &memory).value(), &memory), "");
}

TEST(HostileTree, WhatAReaderWouldRefuseIsNotBuilt) {
  const auto refused = [](const Entries& entries) {
    MetaMemory memory;
    return !BuildTree(entries, &memory);
  };
  EXPECT_TRUE(refused({}));
  EXPECT_TRUE(refused({FileEntry("a")}));
  EXPECT_TRUE(refused({FolderEntry(""), FileEntry("../a")}));
  EXPECT_TRUE(refused({FolderEntry(""), FileEntry("b"), FileEntry("a")}));
  EXPECT_TRUE(refused({FolderEntry(""), FileEntry("a"), FileEntry("a/b")}));
  SnapshotEntry heavy = FileEntry("a");
  for (int i = 0; i < 80; ++i)
    heavy.xattrs.push_back({"user." + std::to_string(100 + i), std::string(65'536, 'x')});
  MetaMemory memory;
  TreeBuilder builder(memory.Put());
  ASSERT_TRUE(builder.Add(FolderEntry("")));
  const auto added = builder.Add(heavy);
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().code, ErrorCode::kUsage);
  ASSERT_TRUE(builder.Add(FileEntry("b")));
  EXPECT_EQ(ReadTree(builder.Finish().value(), &memory).value().size(), 2u);
}

}  // namespace
}  // namespace overcap
