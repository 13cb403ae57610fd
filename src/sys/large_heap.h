// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace overcap {

// The heap of this process is about to take many small things, `bytes` in all: it grows once, in large pages
// where the machine has them, since touching so much page by page takes longer than filling it. Best effort;
// never shrinks again.
void ExpectLargeHeap(size_t bytes);

// For who has nothing else to do: touches the next 2 MiB of what is expected, ahead of its use. False when
// there is no more, or the kernel (before 5.14) cannot. Of one thread.
bool WarmLargeHeap();

// Blocks of 1 MiB and more come from the system and go back to it at once from here on: for who takes and
// leaves such on several threads, whose heaps would keep half as much again.
void GiveBackLargeBlocks();

}  // namespace overcap
