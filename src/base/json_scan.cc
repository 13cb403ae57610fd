// SPDX-License-Identifier: Apache-2.0
#include "base/json_scan.h"

#include <charconv>
#include <cstring>

namespace overcap {
namespace {

bool IsBlank(char c) {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

size_t SkipBlanks(std::string_view text, size_t at) {
  while (at < text.size() && IsBlank(text[at])) ++at;
  return at;
}

// Behind the string that begins at `at` with its quote.
size_t SkipString(std::string_view text, size_t at) {
  for (++at; at < text.size(); ++at) {
    const void* quote = std::memchr(text.data() + at, '"', text.size() - at);
    if (quote == nullptr) return text.size();
    const size_t end = static_cast<size_t>(static_cast<const char*>(quote) - text.data());
    size_t backslashes = 0;
    while (backslashes < end - at && text[end - 1 - backslashes] == '\\') ++backslashes;
    if (backslashes % 2 == 0) return end + 1;
    at = end;
  }
  return text.size();
}

// Behind the value that begins at `at`: at the ',' or bracket that ends it, or at blanks before those.
size_t SkipValue(std::string_view text, size_t at) {
  int depth = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (c == '"') {
      at = SkipString(text, at);
      if (depth == 0) return at;
      continue;
    }
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') {
      if (depth == 0) return at;
      if (--depth == 0) return at + 1;
    }
    if (depth == 0 && (c == ',' || IsBlank(c))) return at;
    ++at;
  }
  return at;
}

void AppendUtf8(std::string* out, unsigned code) {
  if (code < 0x80) {
    out->push_back(static_cast<char>(code));
  } else if (code < 0x800) {
    out->push_back(static_cast<char>(0xC0 | (code >> 6)));
    out->push_back(static_cast<char>(0x80 | (code & 63)));
  } else if (code < 0x10000) {
    out->push_back(static_cast<char>(0xE0 | (code >> 12)));
    out->push_back(static_cast<char>(0x80 | ((code >> 6) & 63)));
    out->push_back(static_cast<char>(0x80 | (code & 63)));
  } else {
    out->push_back(static_cast<char>(0xF0 | (code >> 18)));
    out->push_back(static_cast<char>(0x80 | ((code >> 12) & 63)));
    out->push_back(static_cast<char>(0x80 | ((code >> 6) & 63)));
    out->push_back(static_cast<char>(0x80 | (code & 63)));
  }
}

std::optional<unsigned> Hex4(std::string_view text, size_t at) {
  if (at + 4 > text.size()) return std::nullopt;
  unsigned code = 0;
  const char* end = text.data() + at + 4;
  const auto parsed = std::from_chars(text.data() + at, end, code, 16);
  return parsed.ec == std::errc() && parsed.ptr == end ? std::optional(code) : std::nullopt;
}

// The character of the escape whose letter stands at `*at`; moves to its last byte.
bool AppendEscape(std::string_view text, size_t* at, std::string* out) {
  constexpr std::string_view kLetters = "\"\\/bfnrt", kBytes = "\"\\/\b\f\n\r\t";
  if (const size_t found = kLetters.find(text[*at]); found != std::string_view::npos) {
    out->push_back(kBytes[found]);
    return true;
  }
  auto code = text[*at] == 'u' ? Hex4(text, *at + 1) : std::nullopt;
  if (!code) return false;
  *at += 4;
  if (*code >= 0xD800 && *code < 0xDC00 && text.substr(*at + 1, 2) == "\\u") {
    const auto low = Hex4(text, *at + 3);
    if (!low || *low < 0xDC00 || *low > 0xDFFF) return false;
    code = 0x10000 + ((*code - 0xD800) << 10) + (*low - 0xDC00);
    *at += 6;
  }
  AppendUtf8(out, *code);
  return true;
}

}  // namespace

void JsonElements(std::string_view array, std::vector<std::string_view>* elements) {
  elements->clear();
  size_t at = SkipBlanks(array, 0);
  if (at >= array.size() || array[at] != '[') return;
  at = SkipBlanks(array, at + 1);
  while (at < array.size() && array[at] != ']') {
    const size_t end = SkipValue(array, at);
    if (end == at) return;
    elements->push_back(array.substr(at, end - at));
    at = SkipBlanks(array, end);
    if (at < array.size() && array[at] == ',') at = SkipBlanks(array, at + 1);
  }
}

std::vector<std::string_view> JsonElements(std::string_view array) {
  std::vector<std::string_view> elements;
  JsonElements(array, &elements);
  return elements;
}

std::string_view JsonMember(std::string_view object, std::string_view key) {
  size_t at = SkipBlanks(object, 0);
  if (at >= object.size() || object[at] != '{') return {};
  at = SkipBlanks(object, at + 1);
  while (at < object.size() && object[at] == '"') {
    const size_t name_end = SkipString(object, at);
    const std::string_view name = object.substr(at + 1, name_end - at < 2 ? 0 : name_end - at - 2);
    at = SkipBlanks(object, name_end);
    if (at >= object.size() || object[at] != ':') return {};
    at = SkipBlanks(object, at + 1);
    const size_t end = SkipValue(object, at);
    if (name == key) return object.substr(at, end - at);
    at = SkipBlanks(object, end);
    if (at < object.size() && object[at] == ',') at = SkipBlanks(object, at + 1);
  }
  return {};
}

std::optional<std::string> JsonString(std::string_view value) {
  if (value.size() < 2 || value.front() != '"' || value.back() != '"') return std::nullopt;
  const std::string_view text = value.substr(1, value.size() - 2);
  if (std::memchr(text.data(), '\\', text.size()) == nullptr) return std::string(text);
  std::string out;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '\\') {
      out.push_back(text[at]);
    } else if (++at == text.size() || !AppendEscape(text, &at, &out)) {
      return std::nullopt;
    }
  }
  return out;
}

}  // namespace overcap
