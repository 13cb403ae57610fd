// SPDX-License-Identifier: Apache-2.0
#include "stores/segment_keys.h"

#include <algorithm>
#include <cstdio>

#include "base/text.h"

namespace overcap {
namespace {

constexpr size_t kDigits = 16;

}  // namespace

std::string SegmentKey(const std::string& file, int64_t offset) {
  char digits[24];
  std::snprintf(digits, sizeof digits, "%016lld", static_cast<long long>(offset));
  return StrCat(file, "/", std::string_view(digits));
}

std::optional<int64_t> SegmentOffset(const std::string& file, std::string_view key) {
  if (key.size() != file.size() + 1 + kDigits || !key.starts_with(file) || key[file.size()] != '/')
    return std::nullopt;
  const std::string_view digits = key.substr(file.size() + 1);
  if (digits.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  const auto offset = ParseInt(digits);
  if (!offset) return std::nullopt;
  return int64_t{*offset};
}

std::optional<SegmentPut> NextPut(const SegmentState& state, int64_t size, int64_t now_us, bool hurry) {
  const int64_t fresh = size - state.sent, last = state.sent - state.start;
  if (fresh <= 0) return std::nullopt;
  const bool grow = state.may_grow && last + fresh <= kGrowBytes;
  const int64_t pause = grow                  ? std::max(kPutPauseUs, last * kPutPauseUs / kPauseBytes)
                        : fresh >= kGrowBytes ? 0
                                              : kPutPauseUs;
  if (!hurry && now_us - state.put_us < pause) return std::nullopt;
  if (grow) return SegmentPut{state.start, size};
  return SegmentPut{state.sent, std::min(size, state.sent + kMostSegment)};
}

void NotePut(const SegmentPut& put, int64_t now_us, SegmentState* state) {
  *state = {put.start, put.end, now_us, true};
}

}  // namespace overcap
