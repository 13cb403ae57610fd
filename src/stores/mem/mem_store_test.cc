// SPDX-License-Identifier: Apache-2.0
#include "stores/mem/mem_store.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "stores/testing/lock_conformance.h"
#include "stores/testing/store_conformance.h"

namespace overcap {
namespace {

std::shared_ptr<Store> MakeMem(std::string*) {
  static int made = 0;
  Result<std::unique_ptr<MemStore>> store = MemStore::Named(StrCat("conformance-", ++made), true);
  return store ? std::move(*store) : nullptr;
}

std::shared_ptr<Store> MemAgain(Store& same) {
  return *MemStore::Named(same.Location().substr(4), false);
}

INSTANTIATE_TEST_SUITE_P(Mem, StoreConformance, testing::Values(StoreMaker{"mem", MakeMem, MemAgain}),
                         ConformingStoreName);
INSTANTIATE_TEST_SUITE_P(Mem, LockConformance, testing::Values(StoreMaker{"mem", MakeMem, MemAgain, 600'000}),
                         ConformingStoreName);

TEST(MemStore, ListsPageByPage) {
  MemStore store;
  for (int i = 0; i < 10'000; ++i) ASSERT_TRUE(store.Put(StrCat("k/", 100'000 + i), "x"));
  const Result<StorePage> first = store.List("k/", "");
  ASSERT_TRUE(first);
  EXPECT_LT(first->objects.size(), 10'000u);
  EXPECT_EQ(first->next, first->objects.back().key);
  EXPECT_EQ(store.ListAll("k/")->size(), 10'000u);
}

}  // namespace
}  // namespace overcap
