// SPDX-License-Identifier: Apache-2.0
#include "control/transfer/buffer_pool.h"

#include <chrono>
#include <future>
#include <gtest/gtest.h>
#include <memory>
#include <vector>

namespace overcap {
namespace {

constexpr int64_t kMiB = 1 << 20, kBudget = 40 * kMiB;

// How many of this size one can have at once; the next one is given when one is given back.
int AtOnce(int64_t bytes) {
  BufferPool pool(kBudget);
  std::vector<std::unique_ptr<BufferPool::Lease>> had;
  while (true) {
    auto next =
        std::async(std::launch::async, [&] { return std::make_unique<BufferPool::Lease>(&pool, bytes); });
    if (next.wait_for(std::chrono::milliseconds(had.empty() ? 60'000 : 500)) == std::future_status::ready) {
      had.push_back(next.get());
      continue;
    }
    const int count = static_cast<int>(had.size());
    had.pop_back();
    EXPECT_NE(next.get(), nullptr);
    return count;
  }
}

TEST(BufferPool, TheBudgetIsKeptAndOfLargePartsSomeAreGivenAtOnce) {
  EXPECT_EQ(AtOnce(8 * kMiB), 5);
  EXPECT_EQ(AtOnce(10 * kMiB), 4);
  EXPECT_EQ(AtOnce(20 * kMiB), 4);
  EXPECT_EQ(AtOnce(48 * kMiB), 4);
  EXPECT_EQ(AtOnce(64 * kMiB), 3);
  EXPECT_EQ(AtOnce(500 * kMiB), 1);
}

}  // namespace
}  // namespace overcap
