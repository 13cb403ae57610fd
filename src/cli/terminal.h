// SPDX-License-Identifier: Apache-2.0
// What is known about the terminal, if there is one.
#pragma once

#include <string>
#include <string_view>

namespace overcap::cli {

struct Terminal {
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  bool out_color = false;  // a terminal, no NO_COLOR, TERM is not dumb
  bool err_color = false;
  int width = 0;  // columns of stdout's terminal; 0: not a terminal, nothing is shortened
};

// Asks the system about file descriptors 1 and 2.
Terminal DetectTerminal();

// Columns that UTF-8 text takes on a terminal: escapes and combining marks none, wide East Asian and emoji
// two.
int DisplayWidth(std::string_view utf8);

// For a terminal: `text` without escape sequences and controls but colours, newlines and tabs. It may quote
// another user's job.
std::string OnlyColours(std::string_view text);

// The beginning of `utf8` that fits, with "…" at its end when something is missing.
std::string ShortenToWidth(std::string_view utf8, int width);

}  // namespace overcap::cli
