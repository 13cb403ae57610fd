// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "sys/fd.h"

namespace overcap {

// openat() for a path below the folder `root_fd` that may be longer than the kernel takes at once; "" is the
// folder itself. No symbolic link is followed on the way. Not valid, with errno, on failure.
Fd OpenBelow(int root_fd, std::string_view path, int flags);

}  // namespace overcap
