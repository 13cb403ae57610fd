// SPDX-License-Identifier: Apache-2.0
// What --help prints.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cli/command.h"
#include "cli/render_help.h"

namespace overcap::cli {

// The markdown of a command's help; "" when it has none. "daemon status" is commands/daemon_status.md.
std::string_view HelpMarkdown(const Command& command);

// `overcap --help`: examples, then every command by group. `group` ("daemon") limits it to that group's
// commands.
std::string OverviewHelp(std::span<const Command* const> commands, std::string_view group,
                         const HelpStyle& style);

}  // namespace overcap::cli
