// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/commands/store_copy.h"

namespace overcap::cli {

inline constexpr std::string_view kPipe = "-";

// `store cp - DST` and `store cp SRC -`: one of the two is stdin or stdout. The exit status.
Result<int> CopyThroughPipe(World& world, const Args& args, const StoreCopy& copy);

}  // namespace overcap::cli
