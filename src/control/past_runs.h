// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "clusters/cluster.h"
#include "model/past_run.h"

namespace overcap {

// Runs of the last days on this cluster that are over: its own view of them, else what its records tell. None
// where nothing is known. `for_shares`: all of the last 30 days, for those who count what was used; else as
// many as are enough to learn from.
Result<std::vector<PastRun>> PastRunsOf(Cluster& cluster, int64_t now_us, bool for_shares);

}  // namespace overcap
