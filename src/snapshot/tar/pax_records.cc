// SPDX-License-Identifier: Apache-2.0
#include "snapshot/tar/pax_records.h"

#include <algorithm>
#include <limits>

#include "base/text.h"

namespace overcap {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

}  // namespace

std::optional<std::vector<PaxRecord>> ParsePaxRecords(std::string_view bytes) {
  std::vector<PaxRecord> records;
  while (!bytes.empty()) {
    const size_t blank = bytes.substr(0, 20).find(' ');
    if (blank == std::string_view::npos) return std::nullopt;
    const auto length = ParseInt(bytes.substr(0, blank));
    if (!length || *length <= static_cast<long long>(blank) + 1 ||
        *length > static_cast<long long>(bytes.size())) {
      return std::nullopt;
    }
    const auto size = static_cast<size_t>(*length);
    if (bytes[size - 1] != '\n') return std::nullopt;
    const std::string_view record = bytes.substr(blank + 1, size - blank - 2);
    const size_t equals = record.find('=');
    if (equals == std::string_view::npos || equals == 0) return std::nullopt;
    records.push_back({record.substr(0, equals), record.substr(equals + 1)});
    bytes.remove_prefix(size);
  }
  return records;
}

void AppendPaxRecord(std::string_view key, std::string_view value, std::string* out) {
  const size_t rest = key.size() + value.size() + 3;
  size_t total = rest;
  // The length counts its own digits.
  while (total != rest + std::to_string(total).size()) total = rest + std::to_string(total).size();
  out->append(std::to_string(total)).append(1, ' ').append(key).append(1, '=').append(value).append(1, '\n');
}

int64_t TarSecondsToNs(int64_t seconds) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max() / kSecond - 1;
  return std::clamp(seconds, -kMost, kMost) * kSecond;
}

int64_t NsToTarSeconds(int64_t ns) {
  return ns / kSecond - (ns % kSecond < 0 ? 1 : 0);
}

std::optional<int64_t> ParsePaxTime(std::string_view text) {
  const bool negative = !text.empty() && text[0] == '-';
  if (negative) text.remove_prefix(1);
  const size_t dot = text.find('.');
  const std::string_view whole = text.substr(0, dot);
  std::string_view part = dot == std::string_view::npos ? std::string_view() : text.substr(dot + 1);
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (whole.empty() || whole.size() > 18 || !std::all_of(whole.begin(), whole.end(), is_digit) ||
      !std::all_of(part.begin(), part.end(), is_digit)) {
    return std::nullopt;
  }
  part = part.substr(0, 9);
  int64_t ns = 0;
  for (size_t i = 0; i < 9; ++i) ns = ns * 10 + (i < part.size() ? part[i] - '0' : 0);
  const int64_t value = TarSecondsToNs(*ParseInt(whole)) + ns;
  return negative ? -value : value;
}

std::string FormatPaxTime(int64_t ns) {
  // A negative time is its distance from 1970 with a sign before it.
  const uint64_t distance = ns < 0 ? uint64_t{0} - static_cast<uint64_t>(ns) : static_cast<uint64_t>(ns);
  std::string text = StrCat(ns < 0 ? "-" : "", distance / kSecond);
  if (const uint64_t rest = distance % kSecond; rest != 0) {
    const std::string digits = std::to_string(rest);
    text.append(".").append(9 - digits.size(), '0').append(digits);
  }
  return text;
}

}  // namespace overcap
