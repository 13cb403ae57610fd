// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "control/config.h"
#include "model/machine.h"
#include "sys/devices.h"

namespace overcap {

// What this machine has to give: what the configuration declares, else what was detected.
Machine MachineOf(const ClusterConfig& declared, const MachineFacts& facts);

// The same, detected at most once per boot and kept in <root>/machine.json, so that every command and the
// engine mean the same machine also when one of them may use only a part of it. `fresh`: detect anew.
Machine ThisMachine(const ClusterConfig& declared, const std::string& root, bool fresh);

}  // namespace overcap
