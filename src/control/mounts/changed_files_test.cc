// SPDX-License-Identifier: Apache-2.0
#include "control/mounts/changed_files.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "control/mounts/rclone_cache.h"
#include "stores/all_stores.h"
#include "stores/testing/quick_folder.h"

namespace overcap {
namespace {

TEST(ChangedFiles, AreThoseThatAreNewOrOther) {
  const CopyStamps had = {
      {"same", {1, 2, 3}}, {"size", {1, 2, 3}}, {"time", {1, 2, 3}}, {"other", {1, 2, 3}}, {"gone", {}}};
  const CopyStamps now = {
      {"same", {1, 2, 3}}, {"size", {2, 2, 3}}, {"time", {1, 3, 3}}, {"other", {1, 2, 4}}, {"new", {}}};
  EXPECT_EQ(ChangedSince(had, now),
            (CopyStamps{{"size", {2, 2, 3}}, {"time", {1, 3, 3}}, {"other", {1, 2, 4}}, {"new", {}}}));
}

RC_GTEST_PROP(ChangedFiles, ComeBackFromTheirText,
              (const std::vector<std::string>& names, int64_t a, int64_t b)) {
  CopyStamps stamps;
  for (const std::string& name : names) stamps[std::string(name.c_str())] = {a, b, a ^ b};
  const auto back = StampsFromText(StampsToText(stamps));
  RC_ASSERT(back);
  RC_ASSERT(*back == stamps);
}

TEST(ChangedFiles, ATextThatIsCutOffIsDamaged) {
  const std::string text = StampsToText({{"some/key", {10, 20, 30}}});
  for (size_t size = 1; size < text.size(); ++size)
    EXPECT_FALSE(StampsFromText(text.substr(0, size))) << size;
}

TEST(ChangedFiles, OnlyTheseAreListed) {
  auto store = OpenStore("mem:changed_files_test", true);
  ASSERT_TRUE(store);
  for (const char* key : {"a", "b", "c"}) ASSERT_TRUE((*store)->Put(key, key));
  const CopyStamps keys = {{"b", {}}};
  OnlyKeys only(**store, keys);
  const auto page = only.List("", "");
  ASSERT_TRUE(page);
  ASSERT_EQ(page->objects.size(), 1u);
  EXPECT_EQ(page->objects[0].key, "b");
  EXPECT_EQ(only.Get("b").value_or(""), "b");
  EXPECT_FALSE(only.Remove("b"));
}

TEST(RcloneCache, SaysWhichFilesAreNotInTheStore) {
  const std::string clean = "{\n\t\"ModTime\": \"x\",\n\t\"Dirty\": false\n}\n";
  EXPECT_TRUE(IsCleanNote(clean));
  EXPECT_TRUE(IsCleanNote("{\"Dirty\":false}"));
  EXPECT_FALSE(IsCleanNote("{\n\t\"ModTime\": \"x\",\n\t\"Dirty\": true\n}"));
  for (size_t cut = 0; cut + 2 < clean.size(); ++cut) EXPECT_FALSE(IsCleanNote(clean.substr(0, cut))) << cut;
  EXPECT_EQ(CountDirty("/no/such/folder"), 0);
  const QuickFolder folder;
  std::filesystem::create_directories(folder / "vfsMeta/lab/deep");
  EXPECT_EQ(CountDirty(folder.Path()), 0);
  std::ofstream(folder / "vfsMeta/lab/deep/in the store") << clean;
  EXPECT_EQ(CountDirty(folder.Path()), 0);
  std::ofstream(folder / "vfsMeta/lab/deep/dirty") << "{\"Dirty\": true}";
  std::ofstream(folder / "vfsMeta/lab/being written");
  EXPECT_EQ(CountDirty(folder.Path()), 2);
}

}  // namespace
}  // namespace overcap
