// SPDX-License-Identifier: Apache-2.0
#include "sys/pipe.h"

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace overcap {

Result<PipeEnds> MakePipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Fail(ErrnoError(errno, "cannot make a pipe"));
  return PipeEnds{Fd(ends[0]), Fd(ends[1])};
}

}  // namespace overcap
