// SPDX-License-Identifier: Apache-2.0
#include "sys/large_heap.h"

#include <cstdint>
#include <cstdlib>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

namespace overcap {
namespace {

constexpr uintptr_t kLargePage = 2 << 20;

uintptr_t warmed = 0, expected_end = 0;  // what of the heap is expected and not touched yet

}  // namespace

void ExpectLargeHeap(size_t bytes) {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the most it takes: long arrays too come from the heap
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_TOP_PAD, static_cast<int>(bytes));
  const auto before = reinterpret_cast<uintptr_t>(sbrk(0));
  void* volatile more = std::malloc(kLargePage);  // more than is left: now it grows
  std::free(more);
  const auto after = reinterpret_cast<uintptr_t>(sbrk(0));
  mallopt(M_TOP_PAD, kLargePage);
  const uintptr_t begin = (before + kLargePage - 1) & ~(kLargePage - 1), end = after & ~(kLargePage - 1);
  if (begin >= end) return;
  (void)madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
  warmed = begin, expected_end = end;
}

bool WarmLargeHeap() {
  if (warmed >= expected_end) return false;
  const bool touched = madvise(reinterpret_cast<void*>(warmed), kLargePage, MADV_POPULATE_WRITE) == 0;
  warmed = touched ? warmed + kLargePage : expected_end;
  return touched;
}

void GiveBackLargeBlocks() {
  mallopt(M_MMAP_THRESHOLD, 1 << 20);  // and glibc no longer raises it with every block that is freed
}

}  // namespace overcap
