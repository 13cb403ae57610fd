// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "stores/store.h"

namespace overcap {

// A thousand puts, creates, gets, copies, removes and uploads of many threads through `faulty`, the way to
// which goes wrong all the time; then `direct`, another way to the same bytes, must show exactly what they
// said. Fails the test.
void RunThroughFaults(Store& faulty, Store& direct, uint64_t seed, int64_t large_size);

}  // namespace overcap
