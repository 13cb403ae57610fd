// SPDX-License-Identifier: Apache-2.0
#include "cli/render_help.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "cli/help_texts.h"
#include "cli/terminal.h"

namespace overcap::cli {
namespace {

TEST(RenderHelp, MarkdownBecomesPlainText) {
  constexpr std::string_view kPage =
      "# Examples\n```\novercap x\n```\n\nRuns `x` **now**.\n\n| flag | meaning |\n|---|---|\n| `-n` | a |\n"
      "| `--long` | b \\| c |\n";
  EXPECT_EQ(RenderHelp(kPage, {}), "Examples\n  overcap x\n\nRuns x now.\n\n  -n      a\n  --long  b | c\n");
  EXPECT_TRUE(RenderHelp(kPage, {.color = true}).starts_with("\033[1mExamples\033[0m\n"));
}

TEST(RenderHelp, LinksAreTheirText) {
  EXPECT_EQ(RenderHelp("a [policy](../x.md) of ([all](y)) tasks[0] (x) [no] end]( [open](x", {}),
            "a policy of (all) tasks[0] (x) [no] end]( [open](x\n");
}

TEST(RenderHelp, LinesFit) {
  EXPECT_EQ(RenderHelp("one two three four five six\nseven eight\n\nnine\n", {.width = 40}),
            "one two three four five six seven eight\n\nnine\n");
  EXPECT_EQ(
      RenderHelp("| a | b |\n|---|---|\n| --flag | one two three four five six seven |\n", {.width = 40}),
      "  --flag  one two three four five six\n          seven\n");
  EXPECT_EQ(
      RenderHelp("| a | b |\n|---|---|\n| --a-very-long-flag LOCATION | what it does |\n| -n N | so many |\n",
                 {.width = 40}),
      "  --a-very-long-flag LOCATION\n        what it does\n  -n N  so many\n");
  const std::string word(60, 'x');
  EXPECT_EQ(RenderHelp(StrCat("a ", word, " b"), {.width = 40}), StrCat("a\n", word, "\nb\n"));
}

TEST(RenderHelp, EveryPageFitsIntoAnOrdinaryTerminal) {
  for (const HelpText& page : AllHelpTexts()) {
    bool in_code = false;
    std::string text;  // without what is to be typed, which is not broken
    for (const std::string& line : Split(page.markdown, '\n')) {
      if (line.starts_with("```")) in_code = !in_code;
      if (!in_code && !line.starts_with("```")) text += line + "\n";
    }
    for (const std::string& line : Split(RenderHelp(text, {.width = 80}), '\n')) {
      EXPECT_TRUE(DisplayWidth(line) <= 80 || Trim(line).find(' ') == std::string_view::npos)
          << page.name << ": " << line;
      EXPECT_EQ(line.find("]("), std::string::npos) << page.name << ": " << line;
    }
  }
}

}  // namespace
}  // namespace overcap::cli
