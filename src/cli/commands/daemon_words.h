// SPDX-License-Identifier: Apache-2.0
// The flags of `overcap daemon`; the command itself is in main, since it is the engine.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/args.h"
#include "control/system_setup.h"

namespace overcap::cli {

class World;

constexpr Flag kDaemonRootFlag = {"--root", "", "FOLDER", "the folder that holds the jobs"};
constexpr Flag kDaemonRecoverFlags[] = {
    kDaemonRootFlag, {"--gone", "", "HOST", "end the open slots of a host that will not come back"}};
constexpr Flag kDaemonFlags[] = {
    kDaemonRootFlag,
    {"--idle-exit", "", "SECONDS", "end after so long without jobs and clients; 0: never"},
    {"--system", "", "", "serve all users of this machine; needs root"},
    {"--socket", "", "FILE", "with --system: where it listens"},
    {"--stall", "", "SECONDS", "with --system: close a connection that does not move for so long; 60"},
    {"--slack", "", "SECONDS", "with --system: kill an agent that ends its job so late; 60"},
    {"--policy", "", "FILE", "how labs share this machine (docs/formats/policy.md)"},
    {"--print-unit", "", "", "with --system: print a unit for systemd and end"}};

// What an engine for all users is told; kUsage for flags of it without --system.
Result<SystemWords> SystemWordsOf(const Args& args);

// The unit that starts this program with these words; refused when users other than root can write it.
Result<int> PrintSystemUnit(World& world, const SystemWords& words);

}  // namespace overcap::cli
