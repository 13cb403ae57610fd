// SPDX-License-Identifier: Apache-2.0
// The hosts of a PBS job's node file.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "launch/allocation.h"
#include "launch/detect/host_name.h"

namespace overcap {

// $PBS_NODEFILE: a line per MPI process, so a host stands there as often as it has slots. Hosts in the order
// in which they first come. kCorrupt, naming file and line.
Result<std::vector<AllocatedHost>> ParseNodeFile(std::string_view text, std::string_view file_name);

}  // namespace overcap
