// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"

namespace overcap {

// `overcap agent empty FOLDER`: removes all that lies in the folder, at low priority.
Result<int> EmptyFolder(const std::string& folder);
// `overcap agent empty FOLDER --itself`: the folder too.
Result<int> RemoveFolder(const std::string& folder);

}  // namespace overcap
