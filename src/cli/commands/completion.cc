// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/completion_script.h"
#include "cli/world.h"

namespace overcap::cli {
namespace {

Result<int> RunCompletion(World& world, const Args& args) {
  const std::string& shell = args.words()[0];
  if (shell == "bash") {
    world.out().Write(BashCompletion(world.commands()));
  } else if (shell == "zsh") {
    world.out().Write(ZshCompletion(world.commands()));
  } else {
    return Fail(ErrorCode::kUsage, StrCat("no completion for the shell '", shell, "'"), "one of: bash, zsh");
  }
  return 0;
}

}  // namespace

constinit const Command kCompletion = {.name = "completion",
                                       .summary = "a completion script for bash or zsh",
                                       .usage = "bash|zsh",
                                       .min_words = 1,
                                       .max_words = 1,
                                       .run = RunCompletion,
                                       .group = CommandGroup::kSetup,
                                       .without_config = true};

}  // namespace overcap::cli
