// SPDX-License-Identifier: Apache-2.0
// The on-node runner, `overcap agent`: owns one slot of an attempt and reports only through files of the
// job's folder (docs/formats/job-folder.md).
#pragma once

#include "agent/options.h"
#include "base/result.h"

namespace overcap {

constexpr int kAgentDone = 0;      // the report has its end, whatever that says of the job
constexpr int kAgentNotMine = 17;  // the slot was claimed before: nothing was run, nothing written

// Runs to the end of the slot and returns the exit status of the process. An Error means that nothing could
// be reported. Takes over the whole process: signals, children, session.
Result<int> RunAgent(const AgentOptions& options);

}  // namespace overcap
