// SPDX-License-Identifier: Apache-2.0
#include "cli/help.h"

#include <algorithm>

#include "base/text.h"
#include "cli/args.h"
#include "cli/help_texts.h"
#include "cli/render_help.h"

namespace overcap::cli {
namespace {

std::string FileStem(std::string_view command_name) {
  std::string stem(command_name);
  std::ranges::replace_if(
      stem, [](char c) { return c == ' ' || c == '-'; }, '_');
  return stem;
}

constexpr std::string_view kOverviewExamples =
    "  overcap submit -n 2 python train.py       run it on 2 GPUs, with the code as it is now\n"
    "  overcap submit --follow python train.py   and watch it\n"
    "  overcap ls                                what is queued and running\n"
    "  overcap query last                        how the last one is doing, with its log\n"
    "  overcap abort last                        stop it\n";

struct GroupTitle {
  CommandGroup group;
  std::string_view title;
};
constexpr GroupTitle kGroups[] = {{CommandGroup::kJobs, "Jobs"},
                                  {CommandGroup::kCode, "Code and storage"},
                                  {CommandGroup::kSetup, "Set-up"}};

std::string CommandLines(std::span<const Command* const> commands, const HelpStyle& style,
                         const auto& wanted) {
  std::string out;
  for (const Command* command : commands) {
    if (!wanted(*command)) continue;
    std::string name(command->name);
    for (const std::string_view alias : command->aliases) name += StrCat(", ", alias);
    name.resize(std::max<size_t>(name.size(), 17), ' ');
    out += WrapHelp(StrCat("  ", name, "  "), command->summary, style);
  }
  return out;
}

std::string FlagLines(std::span<const Flag> flags, const HelpStyle& style) {
  std::string out;
  for (const Flag& flag : flags) {
    std::string name = StrCat(flag.short_name.empty() ? "    " : StrCat(flag.short_name, ", "), flag.name,
                              flag.value.empty() ? "" : " ", flag.value);
    name.resize(std::max<size_t>(name.size(), 21), ' ');
    out += WrapHelp(StrCat("  ", name, "  "), flag.summary, style);
  }
  return out;
}

}  // namespace

std::string_view HelpMarkdown(const Command& command) {
  const std::string stem = FileStem(command.name);
  for (const HelpText& text : AllHelpTexts()) {
    if (text.name == stem) return text.markdown;
  }
  return {};
}

std::string OverviewHelp(std::span<const Command* const> commands, std::string_view group,
                         const HelpStyle& style) {
  if (!group.empty()) {
    const std::string prefix = StrCat(group, " ");
    return HelpHeading(StrCat("overcap ", group), style.color) +
           CommandLines(commands, style,
                        [&](const Command& command) { return command.name.starts_with(prefix); });
  }
  std::string out = HelpHeading("Examples", style.color) + std::string(kOverviewExamples);
  for (const GroupTitle& row : kGroups) {
    const auto in_group = [&](const Command& command) { return command.group == row.group; };
    const std::string lines = CommandLines(commands, style, in_group);
    if (!lines.empty()) out += StrCat("\n", HelpHeading(row.title, style.color), lines);
  }
  out += StrCat("\n", HelpHeading("Flags of every command", style.color), FlagLines(GlobalFlags(), style));
  return out + "\n'overcap COMMAND --help' tells all about a command.\n";
}

}  // namespace overcap::cli
