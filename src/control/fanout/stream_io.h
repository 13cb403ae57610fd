// SPDX-License-Identifier: Apache-2.0
// Bytes over a socket, with a limit on how long the other end may be silent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "sys/fd.h"

namespace overcap {

// `stop_fd`: readable once everything shall end; -1: none. kUnavailable when the other end is gone or silent,
// kConflict when it was told to stop.
struct StreamPatience {
  int silence_ms = 30'000;
  int stop_fd = -1;
};

Result<void> WaitForStream(int fd, short events, const StreamPatience& patience);
Result<void> SendBytes(int fd, std::string_view bytes, bool more_follows, const StreamPatience& patience);
// Exactly so many.
Result<void> ReceiveBytes(int fd, char* out, size_t count, const StreamPatience& patience);
Result<void> SendFileRange(int fd, int file, int64_t offset, size_t count, const StreamPatience& patience);

}  // namespace overcap
