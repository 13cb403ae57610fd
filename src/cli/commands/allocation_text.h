// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "control/alloc.h"
#include "control/ssh_config_file.h"

namespace overcap::cli {

// "dev: running for 3m on n2, 1 GPU (job 'x')": one line for people.
std::string AllocationLine(const AllocationState& state, int64_t now_us);
// What `--json` says of one: docs/formats/allocations.md.
std::string AllocationJson(const AllocationState& state, int64_t now_us);
// What `alloc install` did.
std::string InstallLine(const SshInstall& install);

}  // namespace overcap::cli
