// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "net/http/http_wait.h"
#include "net/http/url.h"
#include "sys/fd.h"

namespace overcap {

// A connected, non-blocking socket, by the first address of the host that takes it. kUnavailable, kConflict
// when cancelled.
Result<Fd> ConnectHttp(const HttpOrigin& origin, const HttpWait& wait);

}  // namespace overcap
