// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "sys/fd.h"

namespace overcap {

// Looks up the addresses of a host in the background: a name server may take its time, and nobody has to wait
// for it. From the pipe that is returned (non-blocking) they can be read, one a line; its end means that
// there are no more. The pipe is all that is shared with who looks.
Result<Fd> ResolveBeside(const std::string& host);

}  // namespace overcap
