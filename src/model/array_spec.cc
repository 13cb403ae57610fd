// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "base/text.h"
#include "model/job_spec.h"

namespace overcap {
namespace {

constexpr int kMaxIndex = 1'000'000'000;
constexpr size_t kMaxRanges = 10'000;  // keeps the linear look-ups below cheap

int CountOf(const ArraySpec::Range& range) {
  return (range.last - range.first) / range.step + 1;
}

tl::unexpected<Error> BadArray(std::string_view text, std::string_view why) {
  return Fail(ErrorCode::kUsage, StrCat("'", text.substr(0, 60), "' is no array: ", why),
              "write it like 0-9999, 0-9999%100 or 1,3,5-9:2");
}

std::optional<int> ParseNumber(std::string_view text, int min) {
  if (text.empty() || text.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  const auto number = ParseInt(text);
  if (!number || *number < min || *number > kMaxIndex) return std::nullopt;
  return static_cast<int>(*number);
}

// "7", "5-9" or "5-9:2"; `last` becomes the last index that the step reaches.
std::optional<ArraySpec::Range> ParseRange(std::string_view text) {
  const size_t dash = text.find('-');
  const auto first = ParseNumber(text.substr(0, dash), 0);
  if (!first) return std::nullopt;
  if (dash == std::string_view::npos) return ArraySpec::Range{*first, *first, 1};
  const std::string_view rest = text.substr(dash + 1);
  const size_t colon = rest.find(':');
  const auto last = ParseNumber(rest.substr(0, colon), *first);
  const auto step = colon == std::string_view::npos ? 1 : ParseNumber(rest.substr(colon + 1), 1);
  if (!last || !step) return std::nullopt;
  ArraySpec::Range range{*first, *first + (*last - *first) / *step * *step, *step};
  if (range.first == range.last) range.step = 1;
  return range;
}

}  // namespace

int ArraySpec::Count() const {
  int64_t count = 0;
  for (const Range& range : ranges) count += CountOf(range);
  return static_cast<int>(std::min<int64_t>(count, kMaxIndex));
}

int ArraySpec::IndexAt(int position) const {
  for (const Range& range : ranges) {
    const int count = CountOf(range);
    if (position < count) return range.first + position * range.step;
    position -= count;
  }
  return -1;
}

int ArraySpec::PositionOf(int index) const {
  int before = 0;
  for (const Range& range : ranges) {
    if (index < range.first) return -1;
    if (index <= range.last) {
      return (index - range.first) % range.step == 0 ? before + (index - range.first) / range.step : -1;
    }
    before += CountOf(range);
  }
  return -1;
}

Result<ArraySpec> ParseArraySpec(std::string_view text) {
  ArraySpec array;
  std::string_view indices = text;
  if (const size_t percent = text.find('%'); percent != std::string_view::npos) {
    const auto limit = ParseNumber(text.substr(percent + 1), 1);
    if (!limit) return BadArray(text, "the number after '%' must be at least 1");
    array.limit = *limit;
    indices = text.substr(0, percent);
  }
  for (const std::string& part : Split(indices, ',')) {
    const auto range = ParseRange(part);
    if (!range) return BadArray(text, StrCat("'", part, "' is no index or range"));
    array.ranges.push_back(*range);
  }
  if (array.ranges.size() > kMaxRanges) return BadArray(text, StrCat("more than ", kMaxRanges, " ranges"));
  std::sort(array.ranges.begin(), array.ranges.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t i = 1; i < array.ranges.size(); ++i) {
    if (array.ranges[i].first <= array.ranges[i - 1].last) return BadArray(text, "its ranges overlap");
  }
  if (array.Count() > kMaxArrayTasks) return BadArray(text, StrCat("more than ", kMaxArrayTasks, " tasks"));
  return array;
}

std::string FormatArraySpec(const ArraySpec& array) {
  std::string out;
  for (const ArraySpec::Range& range : array.ranges) {
    if (!out.empty()) out += ',';
    out += std::to_string(range.first);
    if (range.last != range.first) out += StrCat('-', range.last);
    if (range.step != 1) out += StrCat(':', range.step);
  }
  if (array.limit > 0) out += StrCat('%', array.limit);
  return out;
}

}  // namespace overcap
