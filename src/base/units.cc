// SPDX-License-Identifier: Apache-2.0
#include "base/units.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <optional>

#include "base/text.h"

namespace overcap {
namespace {

struct Unit {
  char letter;
  int64_t size;
};
constexpr std::array<Unit, 5> kTimeUnits = {{{'w', 604800}, {'d', 86400}, {'h', 3600}, {'m', 60}, {'s', 1}}};
constexpr std::array<Unit, 5> kByteUnits = {
    {{'P', 1LL << 50}, {'T', 1LL << 40}, {'G', 1LL << 30}, {'M', 1LL << 20}, {'K', 1LL << 10}}};
constexpr int64_t kMaxSeconds = 100LL * 365 * 86400;

template <size_t N>
int64_t SizeOf(const std::array<Unit, N>& units, char letter) {
  for (const Unit& unit : units) {
    if (unit.letter == letter) return unit.size;
  }
  return 0;
}

tl::unexpected<Error> BadDuration(std::string_view text) {
  return Fail(ErrorCode::kUsage, StrCat("'", text, "' is no duration"),
              "write it like 90s, 30m, 4h, 2d or 1-12:00:00");
}

// "D-HH:MM:SS", "HH:MM:SS" and "MM:SS", as schedulers write time limits.
std::optional<int64_t> ParseClock(std::string_view text) {
  int64_t days = 0;
  if (const size_t dash = text.find('-'); dash != std::string_view::npos) {
    const auto parsed = ParseInt(text.substr(0, dash));
    if (!parsed || *parsed < 0 || *parsed > 36500) return std::nullopt;
    days = *parsed;
    text.remove_prefix(dash + 1);
  }
  const std::vector<std::string> parts = Split(text, ':');
  if (parts.size() < 2 || parts.size() > 3) return std::nullopt;
  int64_t seconds = 0;
  for (const std::string& part : parts) {
    const auto parsed = ParseInt(part);
    if (!parsed || *parsed < 0 || *parsed > 1000000) return std::nullopt;
    seconds = seconds * 60 + *parsed;
  }
  return days * 86400 + seconds;
}

std::optional<int64_t> ParseUnits(std::string_view text) {
  int64_t total = 0;
  bool with_units = false;
  while (!text.empty()) {
    const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    const auto count = ParseInt(text.substr(0, digits));
    if (!count || *count > kMaxSeconds) return std::nullopt;
    text.remove_prefix(digits);
    if (text.empty() && with_units) return std::nullopt;  // "1h30": thirty what?
    const int64_t unit = text.empty() ? 1 : SizeOf(kTimeUnits, text[0]);
    with_units = true;
    if (unit == 0) return std::nullopt;
    if (!text.empty()) text.remove_prefix(1);
    total += *count * unit;
    if (total > kMaxSeconds) return std::nullopt;
  }
  return total;
}

}  // namespace

Result<int64_t> ParseDurationSeconds(std::string_view text) {
  const auto seconds = text.find(':') != std::string_view::npos ? ParseClock(text) : ParseUnits(text);
  if (!seconds || *seconds < 1 || *seconds > kMaxSeconds) return BadDuration(text);
  return *seconds;
}

std::string FormatDuration(int64_t seconds) {
  if (seconds <= 0) return "0s";
  std::string out;
  int shown = 0;
  for (const Unit& unit : kTimeUnits) {
    if (unit.letter == 'w') continue;
    const int64_t count = seconds / unit.size;
    seconds %= unit.size;
    if (count > 0) out += StrCat(count, unit.letter);
    if ((count > 0 || shown > 0) && ++shown == 2) break;
  }
  return out;
}

std::string FormatElapsed(int64_t us) {
  constexpr int64_t kTenth = 100'000;
  const int64_t tenths = us < 0 ? 0 : us / kTenth;
  if (tenths >= 100) return FormatDuration(tenths / 10);
  return StrCat(tenths / 10, ".", tenths % 10, "s");
}

Result<int64_t> ParseBytes(std::string_view text) {
  const auto bad = [&] {
    return Fail(ErrorCode::kUsage, StrCat("'", text, "' is no size"), "write it like 512M, 16G or 1.5T");
  };
  std::string_view rest = text;
  double number = 0;
  const std::string digits(rest.substr(0, rest.find_first_not_of("0123456789.")));
  char* end = nullptr;
  number = std::strtod(digits.c_str(), &end);
  if (digits.empty() || *end != '\0') return bad();
  rest.remove_prefix(digits.size());
  if (rest.empty()) {
    return Fail(ErrorCode::kUsage, StrCat("size '", text, "' has no unit"),
                StrCat("write ", text, "G, ", text, "M or, for bytes, ", text, "B"));
  }
  int64_t unit = 1;
  if (rest[0] != 'B') {
    unit = SizeOf(kByteUnits, static_cast<char>(std::toupper(rest[0])));
    rest.remove_prefix(1);
    if (rest.substr(0, 1) == "i") rest.remove_prefix(1);
  }
  if (rest.substr(0, 1) == "B") rest.remove_prefix(1);
  const double bytes = number * static_cast<double>(unit);
  if (unit == 0 || !rest.empty() || bytes < 1 || bytes > 9e18) return bad();
  return static_cast<int64_t>(bytes);
}

std::string FormatBytes(int64_t bytes) {
  for (const Unit& unit : kByteUnits) {
    if (bytes < unit.size) continue;
    char buffer[32];
    std::snprintf(buffer, sizeof buffer, "%.1f %ciB",
                  static_cast<double>(bytes) / static_cast<double>(unit.size), unit.letter);
    return buffer;
  }
  return StrCat(bytes, " B");
}

std::string FormatTimeUtc(int64_t unix_us) {
  const std::time_t seconds = unix_us / 1000000;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char buffer[40];
  const size_t length = std::strftime(buffer, sizeof buffer, "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(buffer + length, sizeof buffer - length, ".%06dZ", static_cast<int>(unix_us % 1000000));
  return buffer;
}

Result<int64_t> ParseTimeUtc(std::string_view text) {
  const auto bad = [&] {
    return Fail(ErrorCode::kUsage, StrCat("'", ToUtf8(text), "' is no time"),
                "write it like 2026-11-15T04:45:16Z");
  };
  constexpr std::string_view kForm = "dddd-dd-ddTdd:dd:dd";
  if (text.size() < kForm.size() + 1 || text.size() > kForm.size() + 8 || text.back() != 'Z') return bad();
  for (size_t i = 0; i < kForm.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (kForm[i] == 'd' ? !digit : text[i] != kForm[i]) return bad();
  }
  const auto number = [&](size_t at, size_t length) {
    return static_cast<int>(*ParseInt(text.substr(at, length)));
  };
  std::tm parts{};
  parts.tm_year = number(0, 4) - 1900;
  parts.tm_mon = number(5, 2) - 1;
  parts.tm_mday = number(8, 2);
  parts.tm_hour = number(11, 2);
  parts.tm_min = number(14, 2);
  parts.tm_sec = number(17, 2);
  const std::tm asked = parts;
  const int64_t seconds = timegm(&parts);  // also carries 30 February over to March
  if (parts.tm_mon != asked.tm_mon || parts.tm_mday != asked.tm_mday || parts.tm_hour != asked.tm_hour)
    return bad();
  std::string fraction(text.substr(kForm.size(), text.size() - kForm.size() - 1));
  if (fraction.empty()) return seconds * 1000000;
  if (fraction[0] != '.' || fraction.size() < 2 ||
      fraction.find_first_not_of("0123456789", 1) != std::string::npos)
    return bad();
  fraction.resize(7, '0');
  return seconds * 1000000 + *ParseInt(std::string_view(fraction).substr(1));
}

std::string FormatWhen(int64_t unix_us, int64_t now_us) {
  const std::time_t now = now_us / 1'000'000, then = (unix_us + 59'999'999) / 60'000'000 * 60;
  std::tm today{}, parts{};
  localtime_r(&now, &today);
  localtime_r(&then, &parts);
  const bool same_day = today.tm_year == parts.tm_year && today.tm_yday == parts.tm_yday;
  const bool near = then > now && then - now < 6 * 86400;
  char buffer[40];
  std::strftime(buffer, sizeof buffer, same_day ? "%H:%M" : near ? "%a %H:%M" : "%Y-%m-%d %H:%M", &parts);
  return buffer;
}

std::string FormatTimeLocal(int64_t unix_us) {
  const std::time_t seconds = unix_us / 1000000;
  std::tm parts{};
  localtime_r(&seconds, &parts);
  char buffer[40];
  std::strftime(buffer, sizeof buffer, "%Y-%m-%d %H:%M:%S", &parts);
  return buffer;
}

}  // namespace overcap
