// SPDX-License-Identifier: Apache-2.0
// Takes a command line apart by the tables of the commands. Pure: no environment, no output.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/command.h"

namespace overcap::cli {

// Flags that every command has. They may stand anywhere before the words of a command line that is taken as
// it is.
std::span<const Flag> GlobalFlags();

struct GlobalOptions {
  bool json = false;
  bool help = false;
  bool version = false;
  bool no_color = false;
  bool quiet = false;
  std::string cluster;
  std::string config_file;
};

struct ParsedLine {
  const Command* command =
      nullptr;        // nullptr: none was named (only with --help or --version, or an empty line)
  std::string group;  // "daemon" when only the first word of a group was named, with --help
  GlobalOptions globals;
  Args args;
};

// `words` is argv without the program's name. The error is kUsage; when it fails, `globals` (may be nullptr)
// still tells what was seen, so that the error can be printed as asked.
Result<ParsedLine> ParseLine(std::span<const std::string> words, std::span<const Command* const> commands,
                             GlobalOptions* globals);

}  // namespace overcap::cli
