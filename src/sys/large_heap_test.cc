// SPDX-License-Identifier: Apache-2.0
#include "sys/large_heap.h"

#include <gtest/gtest.h>
#include <malloc.h>
#include <string>
#include <unistd.h>
#include <vector>

namespace overcap {
namespace {

TEST(LargeHeap, GrowsOnceAndHoldsWhatIsPutIntoIt) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "NOT TESTED: a sanitizer has a heap of its own";
#endif
  ExpectLargeHeap(16 << 20);
  const void* const end = sbrk(0);
  std::vector<std::string> texts;
  for (int i = 0; i < 5'000; ++i) texts.emplace_back(100, 'a');
  int warmed = 0;
  while (WarmLargeHeap()) ++warmed;  // none where the kernel cannot
  EXPECT_LE(warmed, 8);
  EXPECT_FALSE(WarmLargeHeap());
  EXPECT_EQ(texts.front(), std::string(100, 'a'));
  for (int i = 0; i < 5'000; ++i) texts.emplace_back(100, 'a');
  EXPECT_EQ(sbrk(0), end);
  EXPECT_EQ(texts.back(), std::string(100, 'a'));
}

TEST(LargeHeap, GivesBackLargeBlocksAlsoAfterLargerOnesWereFreed) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "NOT TESTED: a sanitizer has a heap of its own";
#endif
  GiveBackLargeBlocks();
  std::string(31 << 20, 'a');  // larger than what the heap may have free
  const size_t before = mallinfo2().hblkhd;
  {
    const std::string large(29 << 20, 'a');
    EXPECT_GE(mallinfo2().hblkhd, before + large.size());
  }
  EXPECT_EQ(mallinfo2().hblkhd, before);
}

}  // namespace
}  // namespace overcap
