// SPDX-License-Identifier: Apache-2.0
// The engine that this machine's users share (docs/formats/system-engine.md), as its clients find it.
#pragma once

#include <string>

#include "base/result.h"
#include "clusters/driver_traits.h"

namespace overcap {

constexpr std::string_view kSystemSocket = "/run/overcap/daemon.sock";
constexpr std::string_view kSystemSocketVariable = "OVERCAP_SYSTEM_SOCKET";

// Where it listens: what the variable names, else the usual place.
std::string SystemSocket();

// This user's own folder there. Asks the engine, which makes it at the first request; kUnavailable when none
// answers. `needed`: the command cannot go on without it, so an engine that does not answer is asked again
// for a while.
Result<std::string> SystemArea(bool needed);

constexpr DriverTraits kSystemTraits = {.name = "system",
                                        .socket = kSystemSocket,
                                        .machine_variable = kSystemSocketVariable,
                                        .find_root = SystemArea};

}  // namespace overcap
