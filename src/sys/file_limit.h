// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace overcap {

// Lets this process have so many files open, as far as the hard limit goes. Programs that it starts with
// Spawn() get the limit that it had before: some (select, loops over all descriptors) suffer from a high one.
void AllowOpenFiles(int64_t count);

// What they get; 0: it was never changed.
int64_t FileLimitToPassOn();

}  // namespace overcap
