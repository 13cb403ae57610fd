// SPDX-License-Identifier: Apache-2.0
// Small, allocation-light helpers for strings.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace overcap {

namespace text_internal {
inline void AppendPiece(std::string* out, std::string_view piece) {
  out->append(piece);
}
inline void AppendPiece(std::string* out, char piece) {
  out->push_back(piece);
}
template <typename N>
requires(std::integral<N> && !std::same_as<N, char>) void AppendPiece(std::string* out, N piece) {
  out->append(std::to_string(piece));
}
}  // namespace text_internal

// StrCat("asks for ", 8, " GPUs"): strings, characters and integers, one after the other.
template <typename... Pieces>
std::string StrCat(const Pieces&... pieces) {
  std::string out;
  (text_internal::AppendPiece(&out, pieces), ...);
  return out;
}

// "1 file", "2 files".
std::string CountOf(int64_t count, std::string_view noun);

std::vector<std::string> Split(std::string_view text,
                               char separator);  // "a,,b" -> {"a", "", "b"}; "" -> {""}
std::string Join(const std::vector<std::string>& parts, std::string_view separator);
std::string_view Trim(std::string_view text);  // without white space at both ends

// A whole decimal number and nothing else, or nullopt.
std::optional<long long> ParseInt(std::string_view text);

// One line for people: words with blanks or odd bytes are quoted so that a shell would read them back.
std::string ShellQuote(std::string_view word);
std::string ShellJoin(const std::vector<std::string>& argv);

// The words of one line, as a shell would take blanks, quotes and backslashes, and nothing else of it (no
// variables, no globs). nullopt when a quote is not closed.
std::optional<std::vector<std::string>> SplitWords(std::string_view line);

// Valid UTF-8 with control bytes and broken sequences as U+FFFD, for JSON and terminals.
std::string ToUtf8(std::string_view bytes);

// 'text' in quotes for a message: on one line whatever it holds, cut after `most` bytes.
std::string Quoted(std::string_view text, size_t most = 60);

// Length of the valid UTF-8 sequence that `bytes` (not empty) begins with, or 0.
size_t Utf8Length(std::string_view bytes);

// The candidate that `word` was probably meant to be, or "" when none is near.
std::string Nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace overcap
