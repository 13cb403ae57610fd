// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>

namespace overcap {

// How many threads a request for `wanted` gets: 0 means one per processor, 8 at most.
int TeamSize(int wanted);

// Calls work() on so many threads, the calling one among them, and returns when all have. With fewer threads
// to be had it is called less often: the work must be such that one call does all that others leave.
void RunTeam(int threads, const std::function<void()>& work);

// Shares the numbers 0 .. count - 1 out in runs, so that neighbours stay on one thread.
class SharedNumbers {
 public:
  SharedNumbers(size_t count, size_t run) : count_(count), run_(run) {}
  // False when all are taken.
  bool Take(size_t* begin, size_t* end) {
    *begin = next_.fetch_add(run_, std::memory_order_relaxed);
    *end = *begin + run_ < count_ ? *begin + run_ : count_;
    return *begin < count_;
  }

 private:
  const size_t count_, run_;
  std::atomic<size_t> next_ = 0;
};

}  // namespace overcap
