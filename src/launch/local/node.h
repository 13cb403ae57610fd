// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "launch/link/channel.h"
#include "sys/clock.h"

namespace overcap {

// `overcap launch-node`: the ranks of one host, for a head at the other end of `ends`
// (docs/formats/node-link.md). Says hello, waits for what to start, runs it, and returns when nothing is left
// of it. The head's end of the connection is an order to stop. Takes all signals and children of this
// process; 0 unless the system failed.
Result<int> RunLaunchNode(node_link::Ends ends, const Clock& clock);

// The same over stdin and stdout, which become /dev/null for everybody else in this process.
Result<int> RunLaunchNode();

}  // namespace overcap
