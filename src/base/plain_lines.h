// SPDX-License-Identifier: Apache-2.0
// Makes the output of another user's program safe to print on a terminal: what remains cannot move the
// cursor, set the title or clear the screen.
#pragma once

#include <string>
#include <string_view>

namespace overcap {

// `line` has no newline. Keeps what follows its last carriage return (the final state of a progress bar) and
// drops escape sequences; other bytes that are no text become U+FFFD. Tabs stay.
std::string PlainLine(std::string_view line);

// The same for each line of a text.
std::string PlainText(std::string_view text);

// The same for text that arrives in pieces.
class PlainLines {
 public:
  std::string Take(std::string_view bytes);  // the lines that are complete so far
  std::string Finish();                      // the last line, which has no newline

 private:
  std::string open_;
};

}  // namespace overcap
