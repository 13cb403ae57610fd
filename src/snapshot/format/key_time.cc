// SPDX-License-Identifier: Apache-2.0
#include "snapshot/format/key_time.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

namespace overcap {
namespace {

constexpr int64_t kLast = 253'402'300'799'999'999;  // the end of 9999
constexpr std::string_view kPattern =
    "dddddddd"
    "T"
    "dddddd"
    "."
    "dddddd"
    "Z";

bool LooksRight(std::string_view text) {
  return std::equal(text.begin(), text.end(), kPattern.begin(), kPattern.end(), [](char c, char pattern) {
    return pattern == 'd' ? c >= '0' && c <= '9' : c == pattern;
  });
}

int Number(std::string_view text, size_t begin, size_t size) {
  int value = 0;
  for (const char c : text.substr(begin, size)) value = value * 10 + (c - '0');
  return value;
}

}  // namespace

std::string KeyTimeText(int64_t time_us) {
  const int64_t clamped = std::clamp<int64_t>(time_us, 0, kLast);
  const std::chrono::sys_time<std::chrono::microseconds> time{std::chrono::microseconds(clamped)};
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  char text[64];
  snprintf(text, sizeof text, "%04d%02u%02uT%02d%02d%02d.%06dZ", static_cast<int>(date.year()),
           static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
           static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
           static_cast<int>(clock.seconds().count()), static_cast<int>(clock.subseconds().count()));
  return text;
}

std::optional<int64_t> ParseKeyTime(std::string_view text) {
  if (!LooksRight(text)) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(Number(text, 0, 4)),
                                         std::chrono::month(Number(text, 4, 2)),
                                         std::chrono::day(Number(text, 6, 2))};
  if (!date.ok()) return std::nullopt;
  const int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  const int64_t seconds = Number(text, 9, 2) * 3600 + Number(text, 11, 2) * 60 + Number(text, 13, 2);
  const int64_t time_us = (days * 86'400 + seconds) * 1'000'000 + Number(text, 16, 6);
  if (KeyTimeText(time_us) != text) return std::nullopt;
  return time_us;
}

}  // namespace overcap
