// SPDX-License-Identifier: Apache-2.0
#include "snapshot/format/tree_pages.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <set>

#include "snapshot/format/testing/meta_memory.h"
#include "snapshot/path_order.h"

namespace overcap {
namespace {

std::vector<SnapshotEntry> Sample() {
  SnapshotEntry rich = FileEntry("a/rich", "rich content");
  rich.xattrs = {{"user.a", ""}, {"user.b", std::string("\0\xff", 2)}};
  rich.unsteady = true;
  rich.mode = 04755;
  rich.mtime_ns = -1;
  SnapshotEntry large = FileEntry("large");
  large.size = int64_t{5} << 40;
  large.content.kind = FileContent::Kind::kMap;
  return {FolderEntry(""),
          FolderEntry("a"),
          FolderEntry("a/b"),
          FileEntry("a/b/c"),
          FileEntry("a/empty", ""),
          rich,
          FileEntry("a-b"),
          FileEntry("a\xff"),
          large,
          SymlinkEntry("link", "../else/where"),
          HardLinkEntry("twin", rich)};
}

Digest Build(const std::vector<SnapshotEntry>& entries, MetaMemory* memory) {
  const auto tree = BuildTree(entries, memory);
  EXPECT_TRUE(tree) << tree.error().message;
  return tree ? *tree : Digest();
}

TEST(TreePages, EveryFieldComesBack) {
  MetaMemory memory;
  const Digest tree = Build(Sample(), &memory);
  const auto entries = ReadTree(tree, &memory);
  ASSERT_TRUE(entries) << entries.error().message;
  EXPECT_EQ(*entries, Sample());
}

TEST(TreePages, ManyEntriesComeBackWithTheirTotals) {
  MetaMemory memory;
  const std::vector<SnapshotEntry> all = ManyEntries(100, 200);
  const Digest tree = Build(all, &memory);
  EXPECT_GT(memory.chunks.size(), 40u);
  EXPECT_EQ(ReadTree(tree, &memory).value(), all);
  TreeReader reader(tree, memory.Get());
  const auto totals = reader.Totals();
  ASSERT_TRUE(totals);
  EXPECT_EQ(totals->entries, 20'101);
  EXPECT_EQ(totals->files, 20'000);
  EXPECT_EQ(totals->bytes, 20'000 * 7);
}

TEST(TreePages, HardLinksAreNotCountedTwice) {
  MetaMemory memory;
  const SnapshotEntry file = FileEntry("a", "12345");
  TreeBuilder builder(memory.Put());
  for (const SnapshotEntry& entry : {FolderEntry(""), file, HardLinkEntry("b", file)})
    ASSERT_TRUE(builder.Add(entry));
  EXPECT_EQ(builder.totals().entries, 3);
  EXPECT_EQ(builder.totals().files, 1);
  EXPECT_EQ(builder.totals().bytes, 5);
}

TEST(TreePages, TheSameEntriesGiveTheSameTreeAndAChangeRewritesFewPages) {
  MetaMemory memory;
  std::vector<SnapshotEntry> all = ManyEntries(100, 200);
  const Digest first = Build(all, &memory);
  const size_t chunks = memory.chunks.size();
  EXPECT_EQ(Build(all, &memory), first);
  EXPECT_EQ(memory.chunks.size(), chunks);
  all[7'000].mtime_ns += 1;
  EXPECT_NE(Build(all, &memory), first);
  EXPECT_LE(memory.chunks.size() - chunks, 4u);
}

TEST(TreePages, SeekGoesToTheFirstEntryThatIsNotBefore) {
  MetaMemory memory;
  const std::vector<SnapshotEntry> all = ManyEntries(40, 50);
  const Digest tree = Build(all, &memory);
  TreeReader reader(tree, memory.Get());
  for (const std::string path : {"folder-100020/file-100007.cc", "", "folder-100003", "folder-100003/", "zzz",
                                 "a", "folder-100039/file-100049.cc", "folder-100020/file-100007.cca"}) {
    ASSERT_TRUE(reader.Seek(path)) << path;
    const auto expected = std::find_if(
        all.begin(), all.end(), [&](const SnapshotEntry& entry) { return !PathBefore(entry.path, path); });
    for (auto at = expected; at != all.end() && at - expected < 300; ++at) {
      const auto entry = reader.Next();
      ASSERT_TRUE(entry) << entry.error().message;
      ASSERT_NE(*entry, nullptr);
      ASSERT_EQ((*entry)->path, at->path);
    }
    if (expected == all.end()) {
      EXPECT_EQ(reader.Next().value(), nullptr);
    }
  }
}

TEST(TreePages, FindEntryReadsOnePagePerLevel) {
  MetaMemory memory;
  const std::vector<SnapshotEntry> all = ManyEntries(100, 200);
  const Digest tree = Build(all, &memory);
  memory.gets = 0;
  const auto found = FindEntry(tree, "folder-100050/file-100123.cc", memory.Get());
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->path, "folder-100050/file-100123.cc");
  EXPECT_LE(memory.gets, 4);
  EXPECT_EQ(FindEntry(tree, "folder-100050/file", memory.Get()).value(), std::nullopt);
  EXPECT_EQ(FindEntry(tree, "zzz", memory.Get()).value(), std::nullopt);
  EXPECT_EQ(FindEntry(tree, "", memory.Get()).value()->type, SnapshotEntryType::kFolder);
}

// "+path", "-path", "~path", one line each.
std::string Diff(const Digest& before, const Digest& after, MetaMemory* memory) {
  std::string text;
  const auto result = DiffTrees(before, after, memory->Get(), [&](const EntryChange& change) -> Result<void> {
    const char sign = change.before == nullptr ? '+' : change.after == nullptr ? '-' : '~';
    text += sign + (change.after != nullptr ? change.after : change.before)->path + "\n";
    return {};
  });
  EXPECT_TRUE(result) << result.error().message;
  return text;
}

TEST(TreePages, DiffNamesWhatWasAddedRemovedAndChangedInOrder) {
  MetaMemory memory;
  std::vector<SnapshotEntry> all = ManyEntries(20, 20);
  const Digest before = Build(all, &memory);
  EXPECT_EQ(Diff(before, before, &memory), "");
  all[100].mode = 0600;
  all.erase(all.begin() + 200);
  all.insert(all.begin() + 300, FileEntry(all[299].path + "0"));
  all.push_back(FileEntry("zzz"));
  const Digest after = Build(all, &memory);
  const std::string added = all[300].path;
  EXPECT_EQ(Diff(before, after, &memory),
            "~folder-100004/file-100014.cc\n-folder-100009/file-100009.cc\n+" + added + "\n+zzz\n");
  EXPECT_EQ(Diff(after, before, &memory),
            "~folder-100004/file-100014.cc\n+folder-100009/file-100009.cc\n-" + added + "\n-zzz\n");
}

TEST(TreePages, DiffStopsWithTheErrorOfTheCaller) {
  MetaMemory memory;
  const Digest small = Build({FolderEntry("")}, &memory), larger = Build(ManyEntries(2, 2), &memory);
  int calls = 0;
  const auto result = DiffTrees(small, larger, memory.Get(), [&](const EntryChange&) -> Result<void> {
    return ++calls == 2 ? Result<void>(Fail(ErrorCode::kConflict, "enough")) : Result<void>();
  });
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kConflict);
  EXPECT_EQ(calls, 2);
}

TEST(TreePages, VisitNamesEveryChunkOnceAndSkipsWhatIsKnown) {
  MetaMemory memory;
  std::vector<SnapshotEntry> all = ManyEntries(30, 100);
  std::vector<ContentPart> parts(5'000, ContentPart{ContentPart::Kind::kChunk, 10, Sha256Of("part")});
  all.push_back(FileEntry("large"));
  all.back().content = {FileContent::Kind::kMap, WriteContentMaps(parts, memory.Put()).value()};
  all.back().size = 50'000;
  const Digest tree = Build(all, &memory);
  std::set<Digest> meta, data;
  TreeVisitor visitor;
  visitor.enter_meta = [&](const Digest& id) { return meta.insert(id).second; };
  visitor.on_data = [&](const Digest& id) { data.insert(id); };
  ASSERT_TRUE(VisitTree(tree, memory.Get(), visitor));
  EXPECT_EQ(meta.size(), memory.chunks.size());
  EXPECT_EQ(data, (std::set<Digest>{Sha256Of("content"), Sha256Of("part")}));
  memory.gets = 0;
  ASSERT_TRUE(VisitTree(tree, memory.Get(), visitor));
  EXPECT_EQ(memory.gets, 0);
}

// A folder of a few names, so that any two have much in common.
std::vector<SnapshotEntry> AnyFolder() {
  const auto name = rc::gen::element<std::string>("a", "b", "a-", "a.", "\xff", "ab", "lib");
  const auto paths = *rc::gen::container<std::vector<std::vector<std::string>>>(
      rc::gen::resize(4, rc::gen::nonEmpty(rc::gen::container<std::vector<std::string>>(name))));
  const auto before = [](const std::string& a, const std::string& b) { return PathBefore(a, b); };
  std::set<std::string, decltype(before)> folders(before), files(before);
  for (const std::vector<std::string>& names : paths) {
    std::string path;
    for (const std::string& one : names) {
      if (!path.empty()) folders.insert(path);
      path += (path.empty() ? "" : "/") + one;
    }
    files.insert(path);
  }
  for (const std::string& folder : folders) files.erase(folder);
  std::vector<SnapshotEntry> entries = {FolderEntry("")};
  for (const std::string& folder : folders) entries.push_back(FolderEntry(folder));
  for (const std::string& file : files)
    entries.push_back(FileEntry(file, file.substr(0, *rc::gen::inRange<size_t>(0, 3))));
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return PathBefore(a.path, b.path); });
  return entries;
}

RC_GTEST_PROP(TreePages, AnyFolderComesBack, ()) {
  MetaMemory memory;
  const std::vector<SnapshotEntry> entries = AnyFolder();
  const auto tree = BuildTree(entries, &memory);
  RC_ASSERT(tree.has_value());
  RC_ASSERT(ReadTree(*tree, &memory).value() == entries);
}

RC_GTEST_PROP(TreePages, ADiffTurnsOneFolderIntoTheOther, ()) {
  MetaMemory memory;
  const std::vector<SnapshotEntry> before = AnyFolder(), after = AnyFolder();
  std::vector<SnapshotEntry> now = before;
  const auto by_path = [](const SnapshotEntry& a, const SnapshotEntry& b) {
    return PathBefore(a.path, b.path);
  };
  const auto result = DiffTrees(
      *BuildTree(before, &memory), *BuildTree(after, &memory), memory.Get(),
      [&](const EntryChange& change) -> Result<void> {
        if (change.before != nullptr)
          now.erase(std::lower_bound(now.begin(), now.end(), *change.before, by_path));
        if (change.after != nullptr)
          now.insert(std::lower_bound(now.begin(), now.end(), *change.after, by_path), *change.after);
        return {};
      });
  RC_ASSERT(result.has_value());
  RC_ASSERT(now == after);
}

}  // namespace
}  // namespace overcap
