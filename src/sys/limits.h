// SPDX-License-Identifier: Apache-2.0
// Resource limits by name, as prlimit(1) calls them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "base/result.h"

namespace overcap {

struct NamedLimit {
  std::string name;
  int64_t soft = -1, hard = -1;  // -1: none
  bool operator==(const NamedLimit&) const = default;
};

// Those of a process, sorted by name. kNotFound when it is gone; kDenied when one of its user ids is not
// `uid`: it is not, or not only, that user's.
Result<std::vector<NamedLimit>> LimitsOfProcess(pid_t pid, uid_t uid);

// Sets them for this process; names that this kernel does not know are passed over. Raising a hard limit
// needs root.
Result<void> SetOwnLimits(const std::vector<NamedLimit>& limits);

// "nofile=1024:4096,nproc=-1:-1" and back; kUsage names what is wrong.
std::string FormatLimits(const std::vector<NamedLimit>& limits);
Result<std::vector<NamedLimit>> ParseLimits(std::string_view text);

}  // namespace overcap
