// SPDX-License-Identifier: Apache-2.0
// Runs a command for as long as a lock in a store is held, and not longer (docs/formats/locks.md).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "control/right_guard.h"
#include "stores/store_lock.h"
#include "sys/signal_inbox.h"

namespace overcap {

// Signals that are passed on to the command, and Ctrl-Z, which is not; for SignalInbox, before any thread is
// made. Without HUP where that was ignored (nohup).
std::vector<int> LockedRunSignals();

struct LockedRun {
  int exit_status = 0;  // the command's own; 128 + signal
  bool lost = false;    // the lock was, and the command was ended
};

struct LockedCommand {
  std::string program;  // what is executed
  std::vector<std::string> argv, env;
};

// Until the command has ended. It leads a process group of its own, and has the terminal if this process has
// it. When the lock is lost it gets TERM, then KILL, in time. `lost` is called once then.
Result<LockedRun> RunLocked(const LockedCommand& command, StoreLock& lock, RightGuard& guard,
                            SignalInbox& inbox, const std::function<void()>& lost);

}  // namespace overcap
