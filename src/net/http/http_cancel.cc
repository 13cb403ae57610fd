// SPDX-License-Identifier: Apache-2.0
#include "net/http/http_cancel.h"

#include <cstdint>
#include <sys/eventfd.h>
#include <unistd.h>

namespace overcap {

HttpCancel::HttpCancel() : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void HttpCancel::Cancel() {
  cancelled_ = true;
  const uint64_t one = 1;
  (void)!write(event_.Get(), &one, sizeof one);
}

}  // namespace overcap
