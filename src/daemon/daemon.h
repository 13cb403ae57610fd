// SPDX-License-Identifier: Apache-2.0
// `overcap daemon`: the embedded engine as a process.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "model/machine.h"
#include "model/policy/policy.h"

namespace overcap {

struct DaemonOptions {
  std::string root;
  std::string binary;  // what is started as `overcap agent`
  Machine machine;
  std::string policy;  // the file of the policy (installed_policy.h); "": the one that is installed, if any
  int idle_exit_seconds = 3600;  // ends by itself after so long without jobs and clients; 0: never
  int grace_seconds = 10;        // between TERM and KILL, for the agents
  bool system = false;      // of the machine, for all its users (docs/formats/system-engine.md); needs root
  std::string socket = {};  // "": daemon.sock in the root
  int stall_seconds = 60;   // of the machine's: a user's connection that does not move for so long is closed
  int slack_seconds = 60;   // that an agent may take beyond the grace of its ranks to end a job
};

// Serves until it is stopped. A second engine on the same root ends at once with status 0.
Result<int> RunDaemon(const DaemonOptions& options);

// `overcap daemon recover`: keeps a copy of a damaged journal, writes a new one from its good records and the
// job folders, and returns a report for the user. kConflict while an engine runs. With `gone` it also ends
// the open slots of the host of that name, which will not come back.
Result<std::string> RecoverJournal(const std::string& root, std::string_view gone = "");

}  // namespace overcap
