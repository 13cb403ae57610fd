// SPDX-License-Identifier: Apache-2.0
// What somebody's program has written, for the terminal of another person: nothing in it moves the cursor,
// sets a title or clears the screen.
#pragma once

#include <string>
#include <string_view>

namespace overcap {

// One line without its newline. Of a line that a program wrote again and again (a progress bar) only what
// follows the last carriage return; without escape sequences; what else is no text is U+FFFD. Tabs stay.
std::string PlainLine(std::string_view line);

// The same for each line of a text.
std::string PlainText(std::string_view text);

// The same for what comes in pieces.
class PlainLines {
 public:
  std::string Take(std::string_view bytes);  // the lines that are whole now
  std::string Finish();                      // the last one, which has no newline

 private:
  std::string open_;
};

}  // namespace overcap
