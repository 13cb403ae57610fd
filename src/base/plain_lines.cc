// SPDX-License-Identifier: Apache-2.0
#include "base/plain_lines.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace overcap {
namespace {

constexpr size_t kLongestLine = 256 << 10;  // longer lines are split
constexpr char kEscape = '\x1B';

bool IsBetween(char c, char first, char last) {
  return c >= first && c <= last;
}

// Where the text of an operating system command or a similar sequence ends: behind BEL or ESC \.
size_t EndOfString(std::string_view text, size_t at) {
  for (; at < text.size(); ++at) {
    if (text[at] == '\a') return at + 1;
    if (text[at] == kEscape) return std::min(text.size(), at + 2);
  }
  return at;
}

// The length of the escape sequence at the start of `text`.
size_t EscapeLength(std::string_view text) {
  if (text.size() < 2) return text.size();
  size_t at = 2;
  const char kind = text[1];
  if (kind == ']' || kind == 'P' || kind == 'X' || kind == '^' || kind == '_') return EndOfString(text, at);
  if (kind == '[') {
    while (at < text.size() && IsBetween(text[at], ' ', '?')) ++at;
    return std::min(text.size(), at + 1);
  }
  at = 1;
  while (at < text.size() && IsBetween(text[at], ' ', '/')) ++at;
  return std::min(text.size(), at + 1);
}

// Some terminals take U+0080 to U+009F (two bytes in UTF-8) for the start of an escape sequence.
bool IsOldControl(std::string_view text) {
  return text.size() > 1 && text[0] == '\xC2' && IsBetween(text[1], '\x80', '\x9F');
}

}  // namespace

std::string PlainLine(std::string_view line) {
  while (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  if (const size_t again = line.rfind('\r'); again != std::string_view::npos) line.remove_prefix(again + 1);
  std::string plain;
  size_t from = 0, at = 0;
  const auto keep = [&] { plain += ToUtf8(line.substr(from, at - from)); };
  while (at < line.size()) {
    const bool escape = line[at] == kEscape, old = IsOldControl(line.substr(at));
    if (!escape && !old) {
      ++at;
      continue;
    }
    keep();
    if (old) plain += "\xEF\xBF\xBD";
    at += old ? 2 : EscapeLength(line.substr(at));
    from = at;
  }
  keep();
  return plain;
}

std::string PlainText(std::string_view text) {
  PlainLines lines;
  std::string plain = lines.Take(text);
  return plain + lines.Finish();
}

std::string PlainLines::Take(std::string_view bytes) {
  open_ += bytes;
  std::string plain;
  size_t from = 0;
  for (size_t end; (end = open_.find('\n', from)) != std::string::npos; from = end + 1)
    plain += PlainLine(std::string_view(open_).substr(from, end - from)) + "\n";
  open_.erase(0, from);
  if (open_.size() > kLongestLine) plain += Finish();
  return plain;
}

std::string PlainLines::Finish() {
  return open_.empty() ? "" : PlainLine(std::exchange(open_, ""));
}

}  // namespace overcap
