// SPDX-License-Identifier: Apache-2.0
// A machine as the engine's socket carries it: {host cpus mem_bytes gpus[{index type uuid memory_bytes}]
// declared cpu_ids[]}.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "base/result.h"
#include "model/machine.h"

namespace overcap {

std::string MachineToJson(const Machine& machine);
Result<Machine> MachineFromJson(std::string_view json);    // kCorrupt when it is no such object
Result<Machine> ReadMachine(const nlohmann::json& value);  // the same of what is parsed already

}  // namespace overcap
