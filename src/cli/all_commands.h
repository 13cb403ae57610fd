// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "cli/command.h"

namespace overcap::cli {

// Every command, in the order of `overcap --help`.
std::span<const Command* const> AllCommands();

}  // namespace overcap::cli
