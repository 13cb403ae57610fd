// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "sys/variables.h"

namespace overcap {

// "~/x", "$SCRATCH/x", "/data/${USER}/x" with the variables in their places, without slashes at its end.
// kUsage when one is not set or empty, or the path is not absolute then.
Result<std::string> ExpandFolder(const std::string& folder, const Variables& variables);

}  // namespace overcap
