// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

#include "base/result.h"

namespace overcap {

// Calls work(i) once for each 0 <= i < count, from a few threads when there is much to do; the calling thread
// is one of them. After the first error only few further calls are begun, and that error is returned once all
// have ended.
Result<void> ParallelFor(size_t count, const std::function<Result<void>(size_t)>& work);

}  // namespace overcap
