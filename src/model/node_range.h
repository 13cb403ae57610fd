// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/result.h"

namespace overcap {

// "4", or "2:8": from 2 to 8.
struct NodeRange {
  int least = 1;
  int most = 0;  // 0: `least`, for good
};

// kUsage: one line.
Result<NodeRange> ParseNodeRange(std::string_view text);

}  // namespace overcap
