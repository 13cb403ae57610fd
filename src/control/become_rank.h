// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace overcap {

// Turns this process into `command`, as the rank that its launcher made of it: RANK, WORLD_SIZE, LOCAL_RANK,
// LOCAL_WORLD_SIZE, NODE_RANK, MASTER_ADDR and MASTER_PORT are set, whatever the launcher calls them; the
// only rank when there is no launcher. The process id stays, so do descriptors that the launcher left open
// (an MPI needs them); signals are as a new program expects them. Returns only when that failed: kNotFound
// and kDenied are about the command, kCorrupt about the launcher's variables. `folder` is the current one.
Error BecomeRank(const std::vector<std::string>& command, const std::string& folder);

}  // namespace overcap
