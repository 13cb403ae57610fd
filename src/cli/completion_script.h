// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "cli/command.h"

namespace overcap::cli {

// Shell scripts that complete commands, flags and job ids; made from the table alone.
std::string BashCompletion(std::span<const Command* const> commands);
std::string ZshCompletion(std::span<const Command* const> commands);

}  // namespace overcap::cli
