// SPDX-License-Identifier: Apache-2.0
#include "cli/progress_meter.h"

#include <algorithm>
#include <cmath>

#include "base/json_writer.h"
#include "base/text.h"
#include "base/units.h"

namespace overcap::cli {
namespace {

constexpr int64_t kWindowUs = 5'000'000;
constexpr int64_t kMinWindowUs = 200'000;
constexpr int64_t kPauseUs = 95'000;  // ten times a second at most

std::string Bar(double part, int width) {
  const int inner = std::clamp(width, 4, 30) - 2;
  const int done = static_cast<int>(part * inner);
  std::string bar(static_cast<size_t>(done), '=');
  if (done < inner) bar += '>';
  bar.resize(static_cast<size_t>(inner), ' ');
  return StrCat("[", bar, "]");
}

// While it is not known how much there is in all.
std::string WithoutTotal(const ProgressFacts& facts, double bytes_per_second) {
  std::string text;
  if (facts.files_total > 0) {
    text = StrCat("  ", facts.files_done, " of ", facts.files_total);
  } else if (facts.files_done > 0) {
    text = StrCat(
        "  ", facts.bytes_done > 0 ? CountOf(facts.files_done, "file") : std::to_string(facts.files_done));
  }
  if (facts.bytes_done == 0) return text;
  text += StrCat("  ", FormatBytes(facts.bytes_done));
  return bytes_per_second < 1 ? text
                              : StrCat(text, "  ", FormatBytes(static_cast<int64_t>(bytes_per_second)), "/s");
}

std::string EventJson(const ProgressFacts& facts, double bytes_per_second, int64_t seconds_left) {
  JsonWriter json;
  json.BeginObject().Field("event", "progress").Field("what", facts.what);
  json.Field("files_done", facts.files_done).Field("files_total", facts.files_total);
  json.Field("bytes_done", facts.bytes_done).Field("bytes_total", facts.bytes_total);
  json.Field("bytes_per_second", static_cast<int64_t>(bytes_per_second));
  return json.Field("seconds_left", seconds_left).EndObject().Take();
}

}  // namespace

void ProgressRate::Note(int64_t now_us, int64_t bytes) {
  if (!points_.empty() && bytes < points_.back().second) points_.clear();
  points_.emplace_back(now_us, bytes);
  while (points_.size() > 2 && now_us - points_[1].first >= kWindowUs) points_.pop_front();
}

double ProgressRate::BytesPerSecond() const {
  if (points_.size() < 2) return 0;
  const int64_t us = points_.back().first - points_.front().first;
  if (us < kMinWindowUs) return 0;
  return static_cast<double>(points_.back().second - points_.front().second) * 1e6 / static_cast<double>(us);
}

int64_t ProgressRate::SecondsLeft(int64_t bytes) const {
  const double rate = BytesPerSecond();
  if (rate < 1) return -1;
  return static_cast<int64_t>(std::ceil(static_cast<double>(std::max<int64_t>(bytes, 0)) / rate));
}

std::string ProgressLine(const ProgressFacts& facts, double bytes_per_second, int64_t seconds_left,
                         int width) {
  std::string text(facts.words);
  if (facts.bytes_total == 0) return text + WithoutTotal(facts, bytes_per_second);
  const double part =
      std::clamp(static_cast<double>(facts.bytes_done) / static_cast<double>(facts.bytes_total), 0.0, 1.0);
  std::string tail = StrCat("  ", static_cast<int>(part * 100), "%  ", FormatBytes(facts.bytes_done), " of ",
                            FormatBytes(facts.bytes_total));
  if (bytes_per_second >= 1) tail += StrCat("  ", FormatBytes(static_cast<int64_t>(bytes_per_second)), "/s");
  if (seconds_left >= 0) tail += StrCat("  ", FormatDuration(seconds_left), " left");
  const int room = width - static_cast<int>(text.size() + tail.size()) - 2;
  if (room >= 8) text += StrCat("  ", Bar(part, room));
  return text + tail;
}

void ProgressMeter::Show(const ProgressFacts& facts) {
  const std::lock_guard lock(mutex_);
  const int64_t now_us = clock_.MonotonicUs();
  if (facts.what != what_) {
    what_ = facts.what;
    rate_ = {};
  }
  rate_.Note(now_us, facts.bytes_done);
  if (now_us - shown_us_ < kPauseUs) return;
  shown_us_ = now_us;
  const double rate = rate_.BytesPerSecond();
  const int64_t left = facts.bytes_total == 0 ? -1 : rate_.SecondsLeft(facts.bytes_total - facts.bytes_done);
  if (out_.json()) {
    out_.Json(EventJson(facts, rate, left));
    (void)out_.Flush();
    return;
  }
  const int width = out_.terminal().width;
  out_.Progress(ProgressLine(facts, rate, left, width > 0 ? width - 1 : 79));
}

}  // namespace overcap::cli
