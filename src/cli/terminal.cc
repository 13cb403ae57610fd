// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/plain_lines.h"
#include "base/text.h"

namespace overcap::cli {
namespace {

bool ColorWanted() {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  const bool forbidden = no_color != nullptr && *no_color != '\0';
  return !forbidden && (term == nullptr || std::string_view(term) != "dumb");
}

uint32_t Decode(std::string_view sequence) {
  const auto lead = static_cast<unsigned char>(sequence[0]);
  if (sequence.size() == 1) return lead;
  uint32_t rune = lead & (0xFFu >> (sequence.size() + 1));
  for (const char c : sequence.substr(1)) rune = rune << 6 | (static_cast<unsigned char>(c) & 0x3Fu);
  return rune;
}

// Good enough for tables: combining marks and joiners none, CJK, Hangul, full-width forms and emoji two.
int RuneWidth(uint32_t rune) {
  const bool none = rune < 0x20 || rune == 0x7F || (rune >= 0x300 && rune <= 0x36F) ||
                    (rune >= 0x200B && rune <= 0x200F) || (rune >= 0xFE00 && rune <= 0xFE0F) ||
                    (rune >= 0x20D0 && rune <= 0x20FF);
  const bool wide = (rune >= 0x1100 && rune <= 0x115F) || (rune >= 0x2E80 && rune <= 0xA4CF) ||
                    (rune >= 0xAC00 && rune <= 0xD7A3) || (rune >= 0xF900 && rune <= 0xFAFF) ||
                    (rune >= 0xFE30 && rune <= 0xFE6F) || (rune >= 0xFF00 && rune <= 0xFF60) ||
                    (rune >= 0xFFE0 && rune <= 0xFFE6) || (rune >= 0x1F300 && rune <= 0x1FAFF) ||
                    (rune >= 0x20000 && rune <= 0x3FFFD);
  return none ? 0 : wide ? 2 : 1;
}

// Length of the escape sequence ("\033[1m") that `text` begins with, or 0.
size_t EscapeLength(std::string_view text) {
  if (text.substr(0, 2) != "\033[") return 0;
  const size_t end = text.find_first_not_of("0123456789;", 2);
  return end == std::string_view::npos ? text.size() : end + 1;
}

struct Glyph {
  size_t bytes;
  int width;
};
Glyph FirstGlyph(std::string_view text) {
  if (const size_t escape = EscapeLength(text); escape > 0) return {escape, 0};
  const size_t length = Utf8Length(text);
  if (length == 0) return {1, 1};  // a broken byte shows as one replacement character
  return {length, RuneWidth(Decode(text.substr(0, length)))};
}

}  // namespace

Terminal DetectTerminal() {
  Terminal terminal;
  terminal.out_is_terminal = isatty(STDOUT_FILENO) == 1;
  terminal.err_is_terminal = isatty(STDERR_FILENO) == 1;
  if (!terminal.out_is_terminal && !terminal.err_is_terminal) return terminal;
  const bool color = ColorWanted();
  terminal.out_color = color && terminal.out_is_terminal;
  terminal.err_color = color && terminal.err_is_terminal;
  if (terminal.out_is_terminal) {
    winsize size{};
    const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    terminal.width = known ? size.ws_col : 80;
  }
  return terminal;
}

int DisplayWidth(std::string_view utf8) {
  const auto plain = [](char c) { return c >= 0x20 && c < 0x7F; };  // nearly all there is in a table
  const auto odd = std::find_if_not(utf8.begin(), utf8.end(), plain);
  int width = static_cast<int>(odd - utf8.begin());
  utf8.remove_prefix(static_cast<size_t>(width));
  while (!utf8.empty()) {
    const Glyph glyph = FirstGlyph(utf8);
    width += glyph.width;
    utf8.remove_prefix(glyph.bytes);
  }
  return width;
}

std::string OnlyColours(std::string_view text) {
  const auto plain = [](char c) { return (c >= 0x20 && c < 0x7F) || c == '\n' || c == '\t'; };
  if (std::all_of(text.begin(), text.end(), plain)) return std::string(text);
  std::string out;
  size_t from = 0;
  for (size_t at = text.find('\033'); at != std::string_view::npos; at = text.find('\033', at + 1)) {
    const std::string_view escape = text.substr(at, EscapeLength(text.substr(at)));
    if (escape.empty() || escape.back() != 'm') continue;
    out += PlainText(text.substr(from, at - from));
    out += escape;
    from = at + escape.size();
  }
  return out + PlainText(text.substr(from));
}

std::string ShortenToWidth(std::string_view utf8, int width) {
  if (DisplayWidth(utf8) <= width) return std::string(utf8);
  if (width <= 0) return {};
  std::string out;
  int used = 0;
  while (!utf8.empty()) {
    const Glyph glyph = FirstGlyph(utf8);
    if (used + glyph.width > width - 1) break;
    used += glyph.width;
    out.append(utf8.substr(0, glyph.bytes));
    utf8.remove_prefix(glyph.bytes);
  }
  return out + "…";
}

}  // namespace overcap::cli
