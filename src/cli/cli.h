// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "cli/command.h"
#include "cli/world.h"

namespace overcap::cli {

// Runs one command line (argv without the program's name) and returns the exit status of the program.
int RunCommandLine(std::span<const std::string> words, std::span<const Command* const> commands,
                   World& world);

}  // namespace overcap::cli
