// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "base/result.h"
#include "sys/process.h"

namespace overcap {

// Runs a program to its end; its output goes to our stderr. A person's Ctrl-C reaches it as it reaches us;
// when `stop` (may be null) is set and it does not end by itself soon, it is stopped: TERM, then KILL. Then,
// and when it fails, the error says how it ended. That it died by a Ctrl-C stops us too (StopSignals).
Result<void> RunStep(SpawnRequest request, const std::atomic<bool>* stop);

}  // namespace overcap
