// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace overcap {

// Exit status of `overcap agent spare` for a tree so small that copying it costs nothing.
constexpr int kSpareNotWorthIt = 3;

// `overcap agent spare --store DIR --tree ID`: has a copy of the code ready for the next attempt. Low
// priority: it must never slow a job down.
Result<int> RunSpare(const std::vector<std::string>& args);

}  // namespace overcap
