// SPDX-License-Identifier: Apache-2.0
#include "cli/help.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "cli/args.h"
#include "cli/help_texts.h"
#include "cli/table.h"

namespace overcap::cli {
namespace {

// One line of running text: `ticks` and **stars** go.
std::string Plain(std::string_view line) {
  std::string out;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '`') continue;
    if (line.substr(i, 2) == "**") {
      ++i;
      continue;
    }
    if (line.substr(i, 2) == "\\|") ++i;
    out += line[i];
  }
  return out;
}

std::string Heading(std::string_view text, bool color) {
  return StrCat(color ? PaintText(Style::kBold, text) : std::string(text), "\n");
}

// "| a | b |" -> {"a", "b"}
std::vector<std::string> RowCells(std::string_view line) {
  std::vector<std::string> cells;
  std::string cell;
  for (size_t i = 1; i < line.size(); ++i) {
    if (line[i] == '|' && line[i - 1] != '\\') {
      cells.push_back(Plain(Trim(cell)));
      cell.clear();
    } else {
      cell += line[i];
    }
  }
  return cells;
}

// The rows of a markdown table as indented columns; the title row and the rule under it are left out.
std::string RenderRows(const std::vector<std::vector<std::string>>& rows) {
  size_t first = 0;
  for (size_t i = 2; i < rows.size(); ++i) first = std::max(first, rows[i].empty() ? 0 : rows[i][0].size());
  std::string out;
  for (size_t i = 2; i < rows.size(); ++i) {
    std::vector<std::string> cells = rows[i];
    cells[0].resize(first, ' ');
    out += StrCat("  ", Join(cells, "  "), "\n");
  }
  return out;
}

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

std::string CommandLines(std::span<const Command* const> commands, const auto& wanted) {
  std::string out;
  for (const Command* command : commands) {
    if (!wanted(*command)) continue;
    std::string name(command->name);
    for (const std::string_view alias : command->aliases) name += StrCat(", ", alias);
    name.resize(std::max<size_t>(name.size(), 17), ' ');
    out += StrCat("  ", name, "  ", command->summary, "\n");
  }
  return out;
}

std::string FlagLines(std::span<const Flag> flags) {
  std::string out;
  for (const Flag& flag : flags) {
    std::string name = StrCat(flag.short_name.empty() ? "    " : StrCat(flag.short_name, ", "), flag.name,
                              flag.value.empty() ? "" : " ", flag.value);
    name.resize(std::max<size_t>(name.size(), 21), ' ');
    out += StrCat("  ", name, "  ", flag.summary, "\n");
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

std::string RenderHelp(std::string_view markdown, bool color) {
  std::string out;
  bool in_code = false;
  std::vector<std::vector<std::string>> rows;
  const std::vector<std::string> lines = Split(markdown, '\n');
  for (const std::string& line : lines) {
    if (!in_code && line.starts_with("|")) {
      rows.push_back(RowCells(line));
      continue;
    }
    out += RenderRows(rows);
    rows.clear();
    if (line.starts_with("```")) {
      in_code = !in_code;
    } else if (in_code) {
      out += StrCat("  ", line, "\n");
    } else if (line.starts_with("#")) {
      out += Heading(Trim(line.substr(line.find_first_not_of('#'))), color);
    } else {
      out += StrCat(Plain(line), "\n");
    }
  }
  out += RenderRows(rows);
  while (out.ends_with("\n\n")) out.pop_back();
  return out;
}

std::string OverviewHelp(std::span<const Command* const> commands, std::string_view group, bool color) {
  if (!group.empty()) {
    const std::string prefix = StrCat(group, " ");
    return Heading(StrCat("overcap ", group), color) +
           CommandLines(commands, [&](const Command& command) { return command.name.starts_with(prefix); });
  }
  std::string out = Heading("Examples", color) + std::string(kOverviewExamples);
  for (const GroupTitle& row : kGroups) {
    const auto in_group = [&](const Command& command) { return command.group == row.group; };
    const std::string lines = CommandLines(commands, in_group);
    if (!lines.empty()) out += StrCat("\n", Heading(row.title, color), lines);
  }
  out += StrCat("\n", Heading("Flags of every command", color), FlagLines(GlobalFlags()));
  return out + "\n'overcap COMMAND --help' tells all about a command.\n";
}

}  // namespace overcap::cli
