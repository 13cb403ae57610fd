// SPDX-License-Identifier: Apache-2.0
#include "control/transfer/folder_view.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

#include "base/text.h"
#include "stores/mem/mem_store.h"
#include "stores/testing/fault_store.h"
#include "stores/testing/quick_folder.h"

namespace overcap {
namespace {

std::vector<std::string> Names(const Store& store, bool skip) {
  std::vector<std::string> names;
  EXPECT_TRUE(VisitLevel(store, skip, [&](const FolderLine& line) { names.push_back(line.name); }));
  return names;
}

TEST(FolderView, OneLevelInTheOrderOfNames) {
  MemStore store;
  for (const char* key : {"a/1", "a/b/2", "a-b", "a0", "c/d/e/f", "z"}) ASSERT_TRUE(store.Put(key, "x"));
  for (const bool skip : {false, true})
    EXPECT_EQ(Names(store, skip), (std::vector<std::string>{"a-b", "a/", "a0", "c/", "z"}));
}

TEST(FolderView, LongFoldersAreSkipped) {
  const auto memory = std::make_shared<MemStore>();
  for (int i = 0; i < 30'000; ++i) ASSERT_TRUE(memory->Put(StrCat("a/", 100'000 + i), "x"));
  ASSERT_TRUE(memory->Put("b", "x"));
  const FaultStore store(memory);
  const std::vector<std::string> both = {"a/", "b"};
  EXPECT_EQ(Names(store, false), both);
  const int64_t walked = store.CallsOf(StoreOp::kList);
  EXPECT_GT(walked, 5);
  const auto any = std::make_shared<MemStore>("", std::make_shared<MemStore::Content>(), KeyRule::kAny);
  for (int i = 0; i < 30'000; ++i) ASSERT_TRUE(any->Put(StrCat("a/", 100'000 + i), "x"));
  ASSERT_TRUE(any->Put("b", "x"));
  const FaultStore skipping(any);
  EXPECT_EQ(Names(skipping, true), both);
  EXPECT_EQ(skipping.CallsOf(StoreOp::kList), 2);
}

TEST(FolderView, Sums) {
  MemStore store;
  for (const char* key : {"a/1", "a/b/2", "c"}) ASSERT_TRUE(store.Put(key, "12345"));
  const auto sums = SumUp(store);
  ASSERT_TRUE(sums);
  EXPECT_EQ(sums->all.files, 3);
  EXPECT_EQ(sums->all.bytes, 15);
  EXPECT_EQ(sums->folders.at("a/").files, 2);
  EXPECT_EQ(sums->folders.at("").bytes, 5);
}

TEST(FolderView, EmptyFoldersGoOthersStay) {
  const QuickFolder folder;
  std::filesystem::create_directories(folder / "top/a/b/c");
  std::filesystem::create_directories(folder / "top/d/e");
  std::ofstream(folder / "top/d/f") << "x";
  RemoveEmptyFolders(folder / "top");
  EXPECT_FALSE(std::filesystem::exists(folder / "top/a"));
  EXPECT_FALSE(std::filesystem::exists(folder / "top/d/e"));
  EXPECT_TRUE(std::filesystem::exists(folder / "top/d/f"));
  RemoveEmptyFolders(folder / "none");
}

}  // namespace
}  // namespace overcap
