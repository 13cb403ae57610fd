// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace overcap::cli {

struct HelpStyle {
  bool color = false;  // headings are bold
  int width = 0;       // of the terminal; 0: there is none
};

// Markdown as plain text: headings without '#', code blocks indented, `ticks` and the targets of links gone,
// tables as columns. Paragraphs and the last cells of rows are broken into lines that fit; code stays as it
// is.
std::string RenderHelp(std::string_view markdown, const HelpStyle& style);

// `text` behind `first`, in lines that fit; those that follow begin below its beginning.
std::string WrapHelp(std::string_view first, std::string_view text, const HelpStyle& style);

std::string HelpHeading(std::string_view text, bool color);

}  // namespace overcap::cli
