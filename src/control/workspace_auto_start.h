// SPDX-License-Identifier: Apache-2.0
// Starting and ending the service behind `workspace auto`, and telling all of a node what is about to happen.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "control/workspace_auto.h"
#include "sys/variables.h"

namespace overcap {

struct AutoStart {
  std::vector<std::string> argv;  // of the service; argv[0] is this program
  Variables variables;
  std::string log;     // what it writes; made when it is missing
  std::string secret;  // given to it on stdin; "": none
  bool in_job = false;
};

// Starts it in a session of its own, without a terminal; returns its pid when it has its lock and goes on by
// itself. Its own error when it ends before.
Result<pid_t> StartAutoService(const AutoStart& start);

// In the service, before any thread: when StartAutoService has started it, it forks again, so that it leads
// no session and nobody waits for it. False: somebody else has started it.
bool LeaveStarter(Variables* variables);

// Tells it to end and waits until it has, at most `patience_us`. What it said last; nullopt: it is still at
// it. kNotFound when none runs for this folder.
Result<std::optional<AutoState>> StopAutoService(const std::string& root, const std::string& name,
                                                 const std::string& host, const std::string& folder,
                                                 int64_t patience_us);

// Those that run on this host, of every workspace of these roots.
std::vector<AutoState> AutoServicesHere(const std::vector<std::string>& roots, const std::string& host);

// The end of an allocation. The services that were started in `job` are told to save and to end, all others
// of the host to save now; waits for those that end, at most `patience_us`. Lines for the job's log: what is
// saved, and what is not.
std::vector<std::string> EndAutoServices(const std::vector<std::string>& roots, const std::string& host,
                                         const std::string& job, int64_t patience_us);
// A warning: all save now. How many were told.
int WarnAutoServices(const std::vector<std::string>& roots, const std::string& host);

}  // namespace overcap
