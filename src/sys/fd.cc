// SPDX-License-Identifier: Apache-2.0
#include "sys/fd.h"

#include <cerrno>

namespace overcap {

void Fd::Reset(int fd) {
  const int old = std::exchange(fd_, fd);
  if (old < 0) return;
  const int saved = errno;
  close(old);  // EINTR too leaves it closed on Linux
  errno = saved;
}

}  // namespace overcap
