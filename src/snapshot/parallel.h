// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

#include "base/result.h"

namespace overcap {

struct ParallelGrain {
  size_t items_per_thread = 32;  // fewer are done before a thread has started
  size_t run = 8;  // taken at once: neighbours are in one folder, where two threads wait for each other
};

// Calls work(i) once for each 0 <= i < count, from a few threads when there is much to do; the calling thread
// is one of them. After the first error only few further calls are begun, and that error is returned once all
// have ended.
Result<void> ParallelFor(size_t count, const std::function<Result<void>(size_t)>& work,
                         const ParallelGrain& grain = {});

}  // namespace overcap
