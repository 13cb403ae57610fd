// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <gtest/gtest.h>

#include "base/crc32c.h"
#include "snapshot/format/testing/meta_memory.h"
#include "snapshot/format/tree_limits.h"

namespace overcap {
namespace {

// A million files in ten thousand folders, without a list of them. `change` may alter or drop (false) an
// entry.
Digest BuildMillion(MetaMemory* memory, const std::function<bool(int64_t number, SnapshotEntry*)>& change) {
  TreeBuilder builder(memory->Put());
  SnapshotEntry file = FileEntry("");
  EXPECT_TRUE(builder.Add(FolderEntry("")));
  EXPECT_TRUE(builder.Add(FolderEntry("src")));
  int64_t number = 0;
  for (int folder = 10'000; folder < 20'000; ++folder) {
    const std::string path = "src/" + std::to_string(folder);
    EXPECT_TRUE(builder.Add(FolderEntry(path)));
    file.path = path + "/100";
    for (int i = 0; i < 100; ++i) {
      file.path[file.path.size() - 2] = static_cast<char>('0' + i / 10);
      file.path[file.path.size() - 1] = static_cast<char>('0' + i % 10);
      file.mtime_ns = 1'000'000;
      if (change(number++, &file) && !builder.Add(file)) ADD_FAILURE() << file.path;
    }
  }
  const auto tree = builder.Finish();
  EXPECT_TRUE(tree);
  return *tree;
}

TEST(TreeDiff, TwoChangesInAMillionFilesAreFoundByReadingAFewPages) {
  MetaMemory memory;
  const Digest before = BuildMillion(&memory, [](int64_t, SnapshotEntry*) { return true; });
  const size_t chunks = memory.chunks.size();
  EXPECT_GT(chunks, 3'000u);
  const Digest after = BuildMillion(&memory, [](int64_t number, SnapshotEntry* file) {
    file->mtime_ns += number == 777'777 ? 1 : 0;
    return number != 500'000;
  });
  EXPECT_LE(memory.chunks.size() - chunks, 6u);
  memory.gets = 0;
  std::vector<std::string> found;
  const auto result = DiffTrees(before, after, memory.Get(), [&](const EntryChange& change) -> Result<void> {
    found.push_back((change.after == nullptr ? "-" : "~") + change.before->path);
    return {};
  });
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(found, (std::vector<std::string>{"-src/15000/100", "~src/17777/177"}));
  // Two pages or nodes per level and change, and those of the folders above.
  EXPECT_LE(memory.gets, 36);
}

TEST(TreeDiff, PagesWhoseEndsMovedAreComparedAndTheRestIsNotRead) {
  MetaMemory memory;
  const std::vector<SnapshotEntry> all = ManyEntries(200, 100);
  const Digest before = BuildTree(all, &memory).value();
  ASSERT_GT(memory.chunks.size(), 60u);
  int joined = 0;
  for (size_t i = 0; i < all.size() && joined < 8; ++i) {
    // Without an entry that ends a page, that page and the next are one.
    if (all[i].type != SnapshotEntryType::kFile || (Crc32c(all[i].path) & kPageEndMask) != 0) continue;
    ++joined;
    std::vector<SnapshotEntry> fewer = all;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    const Digest after = BuildTree(fewer, &memory).value();
    memory.gets = 0;
    std::vector<std::string> removed;
    ASSERT_TRUE(DiffTrees(before, after, memory.Get(), [&](const EntryChange& change) -> Result<void> {
      EXPECT_EQ(change.after, nullptr);
      removed.push_back(change.before->path);
      return {};
    }));
    EXPECT_EQ(removed, std::vector<std::string>{all[i].path});
    EXPECT_LE(memory.gets, 20);
  }
  EXPECT_EQ(joined, 8);
}

}  // namespace
}  // namespace overcap
