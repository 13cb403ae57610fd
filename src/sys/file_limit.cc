// SPDX-License-Identifier: Apache-2.0
#include "sys/file_limit.h"

#include <algorithm>
#include <sys/resource.h>

#include "sys/user.h"

namespace overcap {
namespace {

int64_t limit_before = 0;

}  // namespace

void AllowOpenFiles(int64_t count) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= static_cast<rlim_t>(count)) return;
  if (limit_before == 0) limit_before = OwnFileLimit();
  limit.rlim_cur = std::min<rlim_t>(static_cast<rlim_t>(count), limit.rlim_max);
  (void)setrlimit(RLIMIT_NOFILE, &limit);
}

int64_t FileLimitToPassOn() {
  return limit_before;
}

}  // namespace overcap
