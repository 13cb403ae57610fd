// SPDX-License-Identifier: Apache-2.0
// The keeper: mounts the stores of a job on this node, holds them, takes them away (docs/formats/mounts.md).
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace overcap {

// `overcap agent mounts --job DIR --attempt N --slot S --folder CODE [--place FOLDER]`, or `--probe FOLDER`;
// `words` with the verb. Speaks on standard output, ends when its standard input does.
Result<int> RunMountsKeeper(const std::vector<std::string>& words);

}  // namespace overcap
