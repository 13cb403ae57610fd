// SPDX-License-Identifier: Apache-2.0
// Trees of which pages are lost or damaged: all else is still read.
#include <gtest/gtest.h>
#include <set>

#include "snapshot/format/testing/meta_memory.h"
#include "snapshot/path_order.h"

namespace overcap {
namespace {

struct LenientRead {
  std::vector<SnapshotEntry> entries;
  std::vector<TreeGap> gaps;
};

Result<LenientRead> ReadWithGaps(const Digest& tree, MetaMemory* memory) {
  LenientRead read;
  TreeReader reader(tree, memory->Get());
  reader.SkipDamage([&](const TreeGap& gap) { read.gaps.push_back(gap); });
  while (true) {
    OC_TRY(entry, reader.Next());
    if (entry == nullptr) return read;
    read.entries.push_back(*entry);
  }
}

bool InGap(const std::string& path, const std::vector<TreeGap>& gaps) {
  for (const TreeGap& gap : gaps) {
    if (!PathBefore(path, gap.from) && (!gap.to || PathBefore(path, *gap.to))) return true;
  }
  return false;
}

// Some hard links, so that their files are in pages that are lost too.
std::vector<SnapshotEntry> Sample() {
  std::vector<SnapshotEntry> all = ManyEntries(60, 60);
  const size_t count = all.size();
  all.push_back(FolderEntry("links"));
  for (size_t i = 2; i < count; i += 17) {
    if (all[i].type == SnapshotEntryType::kFile) {
      all.push_back(HardLinkEntry("links/" + std::to_string(10'000 + i), all[i]));
    }
  }
  return all;
}

TEST(TreeGap, WhateverPageIsLostAllElseIsRead) {
  MetaMemory memory;
  const std::vector<SnapshotEntry> all = Sample();
  const Digest tree = BuildTree(all, &memory).value();
  const auto chunks = memory.chunks;
  ASSERT_GT(chunks.size(), 10u);
  for (const auto& [id, bytes] : chunks) {
    memory.chunks = chunks;
    for (const bool damaged : {false, true}) {
      if (damaged) {
        memory.chunks[id] = bytes.substr(0, bytes.size() - 1);
      } else {
        memory.chunks.erase(id);
      }
      EXPECT_FALSE(ReadTree(tree, &memory));
      const auto read = ReadWithGaps(tree, &memory);
      if (id == tree) {
        EXPECT_FALSE(read);
        continue;
      }
      ASSERT_TRUE(read) << read.error().message;
      ASSERT_EQ(read->gaps.size(), 1u);
      EXPECT_EQ(read->gaps[0].error.code, damaged ? ErrorCode::kCorrupt : ErrorCode::kNotFound);
      std::vector<SnapshotEntry> kept, expected;
      for (const SnapshotEntry& entry : read->entries) {
        if (!InGap(entry.path, read->gaps)) kept.push_back(entry);
      }
      for (const SnapshotEntry& entry : all) {
        if (!InGap(entry.path, read->gaps)) expected.push_back(entry);
      }
      EXPECT_EQ(kept, expected);
      EXPECT_EQ(expected.size() + static_cast<size_t>(read->gaps[0].entries), all.size());
      // With the folders that were made up it is a tree: all that comes can be put somewhere.
      MetaMemory other;
      const auto again = BuildTree(read->entries, &other);
      EXPECT_TRUE(again) << again.error().message;
    }
  }
}

TEST(TreeGap, OfATreeThatHasOnlyItsRootNodeLeftTheFolderComesAndNothingElse) {
  MetaMemory memory;
  const Digest tree = BuildTree(Sample(), &memory).value();
  const std::string root = memory.chunks[tree];
  memory.chunks.clear();
  memory.chunks[tree] = root;
  const auto read = ReadWithGaps(tree, &memory);
  ASSERT_TRUE(read);
  ASSERT_EQ(read->entries.size(), 1u);
  EXPECT_EQ(read->entries[0].path, "");
  EXPECT_EQ(read->entries[0].type, SnapshotEntryType::kFolder);
  EXPECT_FALSE(read->gaps.empty());
}

TEST(TreeGap, AfterASeekIntoALostPageTheNextOneComes) {
  MetaMemory memory;
  const std::vector<SnapshotEntry> all = Sample();
  const Digest tree = BuildTree(all, &memory).value();
  const auto chunks = memory.chunks;
  for (const auto& [id, bytes] : chunks) {
    if (id == tree) continue;
    memory.chunks = chunks;
    memory.chunks.erase(id);
    std::vector<TreeGap> gaps;
    TreeReader reader(tree, memory.Get());
    reader.SkipDamage([&](const TreeGap& gap) { gaps.push_back(gap); });
    ASSERT_TRUE(reader.Seek("folder-100030/file-100030.cc"));
    const auto entry = reader.Next();
    ASSERT_TRUE(entry) << entry.error().message;
    ASSERT_NE(*entry, nullptr);
    EXPECT_TRUE((*entry)->path == "folder-100030/file-100030.cc" || !gaps.empty());
  }
}

TEST(TreeGap, AStoreThatDoesNotAnswerIsNoDamage) {
  MetaMemory memory;
  const Digest tree = BuildTree(Sample(), &memory).value();
  const GetMeta get = [&](const Digest& id) -> Result<std::string> {
    if (id != tree) return Fail(ErrorCode::kUnavailable, "later");
    return memory.chunks[id];
  };
  TreeReader reader(tree, get);
  reader.SkipDamage([](const TreeGap&) { ADD_FAILURE(); });
  const auto entry = reader.Next();
  ASSERT_FALSE(entry);
  EXPECT_EQ(entry.error().code, ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace overcap
