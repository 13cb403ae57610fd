// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "sys/fd.h"

namespace overcap {

// Starts `<binary> daemon --root <root>` in a session of its own, with its output in <root>/daemon.log, and
// returns a connection to it; fine when another process starts it at the same time (the engine holds a lock,
// a second one ends quietly). Waits for 10 seconds at most. An engine that fails is reported with the last
// line of its log.
Result<Fd> StartEngine(const std::string& binary, const std::string& root);

}  // namespace overcap
