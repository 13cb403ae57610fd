// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/completion_script.h"
#include "cli/shell_texts.h"
#include "cli/world.h"
#include "control/python_plan.h"

namespace overcap::cli {
namespace {

constexpr Flag kShellInitFlags[] = {
    {"--python-plan", "", "", "say what overcap_setup_python would do here, one step per line"},
};

std::string_view TextOf(std::string_view name) {
  for (const ShellText& text : ShellTexts()) {
    if (text.name == name) return text.text;
  }
  return {};
}

// zsh completes only once compinit has run; without it the functions work all the same.
std::string CompletionOf(const World& world, std::string_view shell) {
  if (shell == "bash") return BashCompletion(world.commands());
  return StrCat("if typeset -f compdef >/dev/null; then\n", ZshCompletion(world.commands()),
                "compdef _overcap_launch launch\nfi\n");
}

// The program's own path stands in it: the functions work wherever PATH leads, and call the program that
// printed them.
std::string ScriptOf(const World& world, std::string_view shell) {
  const std::string program = ShellQuote(world.binary());
  return StrCat("_overcap_program=", program, "\n", TextOf("common"), TextOf(shell),
                "alias launch=", ShellQuote(StrCat(program, " launch")), "\n", CompletionOf(world, shell));
}

Result<int> RunShellInit(World& world, const Args& args) {
  if (args.Has("--python-plan")) {
    OC_TRY(plan, PythonPlanHere(Variables::OfThisProcess()));
    world.out().Write(plan);
    return 0;
  }
  if (args.words().empty()) return Fail(ErrorCode::kUsage, "which shell?", "one of: bash, zsh");
  const std::string& shell = args.words()[0];
  if (shell != "bash" && shell != "zsh")
    return Fail(ErrorCode::kUsage, StrCat("no functions for the shell '", ToUtf8(shell), "'"),
                "one of: bash, zsh");
  world.out().Write(ScriptOf(world, shell));
  return 0;
}

}  // namespace

constinit const Command kShellInit = {.name = "shell-init",
                                      .summary = "functions for bash or zsh: set up job and Python, launch",
                                      .usage = "bash|zsh",
                                      .flags = kShellInitFlags,
                                      .max_words = 1,
                                      .run = RunShellInit,
                                      .group = CommandGroup::kSetup,
                                      .without_config = true};

}  // namespace overcap::cli
