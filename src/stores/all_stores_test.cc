// SPDX-License-Identifier: Apache-2.0
#include "stores/all_stores.h"

#include <gtest/gtest.h>

#include "sys/testing/temp_folder.h"

namespace overcap {
namespace {

TEST(AllStores, APathIsAFolder) {
  const TempFolder folder;
  EXPECT_EQ(OpenStore(folder / "s", false).error().code, ErrorCode::kNotFound);
  const auto store = OpenStore(folder / "s", true);
  ASSERT_TRUE(store);
  ASSERT_TRUE((*store)->Put("a", "1"));
  EXPECT_EQ((*store)->Location(), folder / "s");
  EXPECT_EQ(*(*OpenStore(folder / "s", false))->Get("a"), "1");
}

TEST(AllStores, MemoryOfOneNameIsShared) {
  EXPECT_EQ(OpenStore("mem:all-stores-test", false).error().code, ErrorCode::kNotFound);
  const auto store = OpenStore("mem:all-stores-test", true);
  ASSERT_TRUE((*store)->Put("a", "1"));
  EXPECT_EQ(*(*OpenStore("mem:all-stores-test", false))->Get("a"), "1");
  EXPECT_EQ((*store)->Location(), "mem:all-stores-test");
}

TEST(AllStores, OthersAreRefused) {
  for (const char* location : {"", "relative/path", "s3://bucket/x", "~/store"}) {
    const auto store = OpenStore(location, true);
    ASSERT_FALSE(store) << location;
    EXPECT_EQ(store.error().code, ErrorCode::kUsage);
    EXPECT_FALSE(store.error().hint.empty());
  }
}

}  // namespace
}  // namespace overcap
