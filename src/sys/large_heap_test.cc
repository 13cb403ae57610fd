// SPDX-License-Identifier: Apache-2.0
#include "sys/large_heap.h"

#include <gtest/gtest.h>
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
  for (int i = 0; i < 10'000; ++i) texts.emplace_back(100, 'a');
  EXPECT_EQ(sbrk(0), end);
  EXPECT_EQ(texts.back(), std::string(100, 'a'));
}

}  // namespace
}  // namespace overcap
