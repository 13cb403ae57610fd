// SPDX-License-Identifier: Apache-2.0
#include "cli/help.h"

#include <gtest/gtest.h>
#include <set>

#include "base/text.h"
#include "cli/all_commands.h"
#include "cli/args.h"
#include "cli/help_texts.h"

namespace overcap::cli {
namespace {

std::vector<std::string> Headings(std::string_view markdown) {
  std::vector<std::string> headings;
  bool in_code = false;
  for (const std::string& line : Split(markdown, '\n')) {
    if (line.starts_with("```")) in_code = !in_code;
    if (!in_code && line.starts_with("#"))
      headings.emplace_back(Trim(line.substr(line.find_first_not_of('#'))));
  }
  return headings;
}

// What looks like our flags in the running text and tables; code blocks hold the flags of other programs too.
std::set<std::string> LongFlagsIn(std::string_view markdown) {
  std::set<std::string> flags;
  bool in_code = false;
  for (const std::string& line : Split(markdown, '\n')) {
    if (line.starts_with("```")) in_code = !in_code;
    for (size_t at = line.find("`--"); !in_code && at != std::string::npos; at = line.find("`--", at + 1)) {
      const size_t end = line.find_first_not_of("abcdefghijklmnopqrstuvwxyz-_", at + 1);
      if (end - at > 3) flags.insert(line.substr(at + 1, end - at - 1));
    }
  }
  return flags;
}

TEST(Help, EveryPageBeginsWithExamplesAndEndsWithExitStatuses) {
  for (const HelpText& text : AllHelpTexts()) {
    const std::vector<std::string> headings = Headings(text.markdown);
    ASSERT_GE(headings.size(), 2u) << text.name;
    EXPECT_TRUE(text.markdown.starts_with("#")) << text.name;
    EXPECT_EQ(headings.front(), "Examples") << text.name;
    EXPECT_EQ(headings.back(), "Exit statuses") << text.name;
  }
}

TEST(Help, EveryCommandHasAPageThatNamesAllItsFlags) {
  for (const Command* command : AllCommands()) {
    const std::string_view markdown = HelpMarkdown(*command);
    ASSERT_FALSE(markdown.empty()) << command->name;
    for (const Flag& flag : command->flags) {
      EXPECT_NE(markdown.find(flag.name), std::string_view::npos) << command->name << " " << flag.name;
      EXPECT_NE(markdown.find(flag.short_name), std::string_view::npos)
          << command->name << " " << flag.short_name;
    }
  }
}

TEST(Help, NoPageNamesAFlagThatTheCommandDoesNotHave) {
  for (const Command* command : AllCommands()) {
    std::set<std::string> known;
    for (const Flag& flag : GlobalFlags()) known.emplace(flag.name);
    for (const Flag& flag : command->flags) known.emplace(flag.name);
    for (const std::string& flag : LongFlagsIn(HelpMarkdown(*command))) {
      EXPECT_TRUE(known.contains(flag)) << command->name << " " << flag;
    }
  }
}

TEST(Help, EveryCommandCanBeRunAndHasASummary) {
  std::set<std::string> names;
  for (const Command* command : AllCommands()) {
    EXPECT_NE(command->run, nullptr) << command->name;
    EXPECT_FALSE(command->summary.empty()) << command->name;
    EXPECT_TRUE(names.emplace(command->name).second) << command->name;
    for (const std::string_view alias : command->aliases) EXPECT_TRUE(names.emplace(alias).second) << alias;
  }
}

TEST(Help, NoFlagOfACommandHidesAnother) {
  for (const Command* command : AllCommands()) {
    std::set<std::string> names;
    for (const Flag& flag : GlobalFlags())
      names.insert({std::string(flag.name), std::string(flag.short_name)});
    names.erase("");
    names.erase("-c");  // before the verb it is everybody's, behind it a command may have its own
    for (const Flag& flag : command->flags) {
      EXPECT_TRUE(names.emplace(flag.name).second) << command->name << " " << flag.name;
      EXPECT_TRUE(flag.short_name.empty() || names.emplace(flag.short_name).second)
          << command->name << " " << flag.short_name;
    }
  }
}

TEST(Help, TheOverviewBeginsWithExamplesAndNamesEveryCommand) {
  const std::string overview = OverviewHelp(AllCommands(), "", {.width = 80});
  EXPECT_TRUE(overview.starts_with("Examples\n  overcap "));
  for (const Command* command : AllCommands()) {
    EXPECT_NE(overview.find(StrCat("\n  ", command->name)), std::string::npos) << command->name;
  }
  for (const std::string& line : Split(overview, '\n')) {
    EXPECT_TRUE(line.size() <= 80 || line.starts_with("  overcap ")) << line;
  }
}

}  // namespace
}  // namespace overcap::cli
