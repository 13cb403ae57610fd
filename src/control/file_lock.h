// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

#include "base/result.h"
#include "sys/fd.h"

namespace overcap {

// Held while it lives; the kernel frees it when its process dies.
struct FileLock {
  Fd fd;
};

// Makes the file (0600) when it is missing. kUnavailable when somebody else has the lock all the time.
Result<FileLock> LockFile(const std::string& path, std::chrono::milliseconds patience);

}  // namespace overcap
