// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"

namespace overcap {

// Removes a file or a folder with all below it; fine when it is gone. Follows no symbolic link, and opens
// folders that their owner has made read-only (jobs do that). Goes on past what it cannot remove, then
// reports the first.
Result<void> RemoveTree(const std::string& path);

}  // namespace overcap
