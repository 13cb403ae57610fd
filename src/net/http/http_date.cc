// SPDX-License-Identifier: Apache-2.0
#include "net/http/http_date.h"

#include <ctime>

#include "base/text.h"

namespace overcap {
namespace {

constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                   "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

std::tm Parts(int64_t us) {
  const std::time_t seconds = us / 1'000'000;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  return parts;
}

std::string Digits(int value, size_t width) {
  std::string text = std::to_string(value);
  return text.size() < width ? std::string(width - text.size(), '0') + text : text;
}

// The number of exactly so many digits at a place, or -1.
int Number(std::string_view text, size_t at, size_t width) {
  if (at + width > text.size()) return -1;
  int value = 0;
  for (const char c : text.substr(at, width)) {
    if (c < '0' || c > '9') return -1;
    value = value * 10 + (c - '0');
  }
  return value;
}

std::optional<int64_t> FromParts(int year, int month, int day, int hour, int minute, int second) {
  if (year < 1970 || month < 1 || month > 12 || day < 1 || day > 31 || hour < 0 || hour > 23 || minute < 0 ||
      minute > 59 || second < 0 || second > 60)
    return std::nullopt;
  std::tm parts{};
  parts.tm_year = year - 1900, parts.tm_mon = month - 1, parts.tm_mday = day;
  parts.tm_hour = hour, parts.tm_min = minute, parts.tm_sec = second;
  return static_cast<int64_t>(timegm(&parts)) * 1'000'000;
}

std::string TimeOfDay(const std::tm& parts, std::string_view joint) {
  return StrCat(Digits(parts.tm_hour, 2), joint, Digits(parts.tm_min, 2), joint, Digits(parts.tm_sec, 2));
}

std::string DateOf(const std::tm& parts, std::string_view joint) {
  return StrCat(Digits(parts.tm_year + 1900, 4), joint, Digits(parts.tm_mon + 1, 2), joint,
                Digits(parts.tm_mday, 2));
}

}  // namespace

std::string HttpDate(int64_t us) {
  const std::tm parts = Parts(us);
  return StrCat(kDays[parts.tm_wday], ", ", Digits(parts.tm_mday, 2), " ", kMonths[parts.tm_mon], " ",
                Digits(parts.tm_year + 1900, 4), " ", TimeOfDay(parts, ":"), " GMT");
}

std::string BasicIsoTime(int64_t us) {
  const std::tm parts = Parts(us);
  return StrCat(DateOf(parts, ""), "T", TimeOfDay(parts, ""), "Z");
}

std::string ExtendedIsoTime(int64_t us) {
  const std::tm parts = Parts(us);
  return StrCat(DateOf(parts, "-"), "T", TimeOfDay(parts, ":"), "Z");
}

std::optional<int64_t> ParseHttpDate(std::string_view text) {
  if (text.size() != 29 || text.substr(3, 2) != ", " || text.substr(25) != " GMT") return std::nullopt;
  for (int month = 1; month <= 12; ++month) {
    if (text.substr(8, 3) != kMonths[month - 1]) continue;
    return FromParts(Number(text, 12, 4), month, Number(text, 5, 2), Number(text, 17, 2), Number(text, 20, 2),
                     Number(text, 23, 2));
  }
  return std::nullopt;
}

std::optional<int64_t> ParseIsoTime(std::string_view text) {
  if (text.size() < 20 || text.size() > 30 || text.back() != 'Z' || text[4] != '-' || text[7] != '-' ||
      text[10] != 'T' || text[13] != ':' || text[16] != ':')
    return std::nullopt;
  const auto whole = FromParts(Number(text, 0, 4), Number(text, 5, 2), Number(text, 8, 2),
                               Number(text, 11, 2), Number(text, 14, 2), Number(text, 17, 2));
  if (!whole || text.size() == 20) return whole;
  const std::string_view fraction = text.substr(20, text.size() - 21);
  if (text[19] != '.' || fraction.empty() || Number(fraction, 0, fraction.size()) < 0) return std::nullopt;
  return *whole + Number(std::string(fraction.substr(0, 6)) +
                             std::string(6 - std::min<size_t>(fraction.size(), 6), '0'),
                         0, 6);
}

}  // namespace overcap
