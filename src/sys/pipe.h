// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "sys/fd.h"

namespace overcap {

struct PipeEnds {
  Fd read, write;
};

// Both ends are close-on-exec.
Result<PipeEnds> MakePipe();

}  // namespace overcap
