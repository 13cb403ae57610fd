// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/slurm_time.h"

#include <cstdio>
#include <ctime>
#include <vector>

#include "base/text.h"
#include "base/units.h"

namespace overcap {
namespace {

constexpr int64_t kMinute = 60, kHour = 3600, kDay = 86400;
constexpr int64_t kMostOfAUnit = 100'000'000;     // years; keeps sums far from overflow
constexpr int64_t kLastSecond = 253'402'300'799;  // the end of the year 9999
constexpr std::string_view kIsoShape = "dddd-dd-ddTdd:dd:dd";

std::optional<int64_t> Count(std::string_view digits) {
  if (digits.empty() || digits[0] < '0' || digits[0] > '9') return std::nullopt;
  const auto value = ParseInt(digits);
  if (!value || *value > kMostOfAUnit) return std::nullopt;
  return *value;
}

// The parts between colons, the first of which counts `first_unit` seconds and each other the next smaller.
std::optional<int64_t> SumParts(std::string_view text, int64_t first_unit) {
  int64_t sum = 0, unit = first_unit;
  while (true) {
    const size_t colon = text.find(':');
    const auto count = Count(text.substr(0, colon));
    if (!count || unit == 0) return std::nullopt;
    sum += *count * unit;
    if (colon == std::string_view::npos) return sum;
    text.remove_prefix(colon + 1);
    unit = unit == kHour ? kMinute : unit == kMinute ? 1 : 0;
  }
}

bool HasIsoShape(std::string_view text) {
  if (text.size() != kIsoShape.size()) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (kIsoShape[i] == 'd' ? !digit : text[i] != kIsoShape[i]) return false;
  }
  return true;
}

int Number(std::string_view digits) {
  int value = 0;
  for (char c : digits) value = value * 10 + (c - '0');
  return value;
}

std::optional<int64_t> ParseLocalIso(std::string_view text) {
  tm parts{};
  parts.tm_year = Number(text.substr(0, 4)) - 1900;
  parts.tm_mon = Number(text.substr(5, 2)) - 1;
  parts.tm_mday = Number(text.substr(8, 2));
  parts.tm_hour = Number(text.substr(11, 2));
  parts.tm_min = Number(text.substr(14, 2));
  parts.tm_sec = Number(text.substr(17, 2));
  parts.tm_isdst = -1;
  const bool real = parts.tm_mon >= 0 && parts.tm_mon < 12 && parts.tm_mday >= 1 && parts.tm_mday <= 31 &&
                    parts.tm_hour < 24 && parts.tm_min < 60 && parts.tm_sec <= 60 && parts.tm_year >= 70;
  if (!real) return std::nullopt;
  const time_t seconds = mktime(&parts);
  if (seconds <= 0) return std::nullopt;
  return int64_t{seconds} * 1'000'000;
}

}  // namespace

std::optional<int64_t> ParseSlurmDuration(std::string_view text) {
  if (text == "UNLIMITED" || text == "unlimited" || text == "infinite") return kSlurmUnlimited;
  const size_t dash = text.find('-');
  if (dash != std::string_view::npos) {
    const auto days = Count(text.substr(0, dash));
    const auto rest = SumParts(text.substr(dash + 1), kHour);
    if (!days || !rest) return std::nullopt;
    return *days * kDay + *rest;
  }
  const size_t first = text.find(':');
  const bool has_hours =
      first != std::string_view::npos && text.find(':', first + 1) != std::string_view::npos;
  return SumParts(text, has_hours ? kHour : kMinute);
}

std::string FormatSlurmDuration(int64_t seconds) {
  char clock[16];
  std::snprintf(clock, sizeof clock, "%02d:%02d:%02d", static_cast<int>(seconds % kDay / kHour),
                static_cast<int>(seconds % kHour / kMinute), static_cast<int>(seconds % kMinute));
  return seconds < kDay ? std::string(clock) : StrCat(seconds / kDay, "-", clock);
}

std::optional<int64_t> ParseSlurmTime(std::string_view text) {
  if (HasIsoShape(text)) return ParseLocalIso(text);
  if (text.empty() || text[0] < '0' || text[0] > '9') return std::nullopt;
  const auto seconds = ParseInt(text);
  if (!seconds || *seconds <= 0 || *seconds > kLastSecond) return std::nullopt;
  return *seconds * 1'000'000;
}

std::string FormatSlurmTime(int64_t unix_us) {
  std::string text = FormatTimeLocal(unix_us);
  if (text.size() > 10 && text[10] == ' ') text[10] = 'T';
  return text;
}

}  // namespace overcap
