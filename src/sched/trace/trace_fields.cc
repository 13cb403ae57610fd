// SPDX-License-Identifier: Apache-2.0
#include "sched/trace/trace_fields.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/text.h"

namespace overcap {
namespace {

constexpr double kMostSeconds = 1e12;
constexpr double kMostGpus = 1e7;

std::optional<int> Digits(std::string_view text, size_t from, size_t count) {
  if (text.size() < from + count) return std::nullopt;
  int value = 0;
  for (size_t i = from; i < from + count; ++i) {
    if (text[i] < '0' || text[i] > '9') return std::nullopt;
    value = value * 10 + (text[i] - '0');
  }
  return value;
}

// Days since 1970 of a day of the Gregorian calendar.
int64_t DaysOf(int year, int month, int day) {
  const int shifted = year - (month <= 2 ? 1 : 0);
  const int era = (shifted >= 0 ? shifted : shifted - 399) / 400;
  const int of_era = shifted - era * 400;
  const int of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return int64_t{era} * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

std::string_view WithoutQuotes(std::string_view field) {
  if (field.size() >= 2 && field.front() == '"' && field.back() == '"')
    return field.substr(1, field.size() - 2);
  return field;
}

}  // namespace

bool TraceLines::Next(std::string_view* line) {
  if (left_.empty()) return false;
  const size_t end = left_.find('\n');
  *line = left_.substr(0, end);
  left_.remove_prefix(end == std::string_view::npos ? left_.size() : end + 1);
  if (!line->empty() && line->back() == '\r') line->remove_suffix(1);
  ++number_;
  return true;
}

std::optional<double> TraceNumber(std::string_view text) {
  text = Trim(text);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<double> TraceTime(std::string_view text) {
  text = Trim(text);
  if (const auto number = TraceNumber(text)) return number;
  const auto year = Digits(text, 0, 4), month = Digits(text, 5, 2), day = Digits(text, 8, 2);
  const auto hour = Digits(text, 11, 2), minute = Digits(text, 14, 2), second = Digits(text, 17, 2);
  if (!year || !month || !day || !hour || !minute || !second) return std::nullopt;
  const bool separated = text[4] == '-' && text[7] == '-' && (text[10] == ' ' || text[10] == 'T') &&
                         text[13] == ':' && text[16] == ':';
  if (!separated || *month < 1 || *month > 12 || *day < 1 || *day > 31 || *hour > 24 || *minute > 59 ||
      *second > 60)
    return std::nullopt;
  return static_cast<double>(DaysOf(*year, *month, *day) * 86400 + *hour * 3600 + *minute * 60 + *second);
}

std::optional<double> TraceDuration(std::string_view text) {
  text = Trim(text);
  double days = 0;
  if (const size_t dash = text.find('-'); dash != std::string_view::npos && dash > 0) {
    const auto number = TraceNumber(text.substr(0, dash));
    if (!number) return std::nullopt;
    days = *number;
    text.remove_prefix(dash + 1);
  }
  double seconds = 0;
  for (const std::string& part : Split(text, ':')) {
    const auto number = TraceNumber(part);
    if (!number) return std::nullopt;
    seconds = seconds * 60 + *number;
  }
  return days * 86400 + seconds;
}

void SplitFields(std::string_view line, char separator, std::vector<std::string_view>* fields) {
  fields->clear();
  for (size_t begin = 0;;) {
    size_t end = line.find(separator, begin);
    if (begin < line.size() && line[begin] == '"') {  // a separator inside quotes is none
      const size_t quote = line.find('"', begin + 1);
      if (quote != std::string_view::npos) end = line.find(separator, quote);
    }
    fields->push_back(
        WithoutQuotes(Trim(line.substr(begin, end == std::string_view::npos ? end : end - begin))));
    if (end == std::string_view::npos) return;
    begin = end + 1;
  }
}

void AddTraceRow(const TraceRow& row, uint32_t line, Trace* trace) {
  const auto skip = [&](const char* why) { trace->skips.Add(why, line); };
  if (!row.submit_s) return skip("no submit time");
  if (!row.run_s) return skip("no run time");
  if (*row.submit_s < 0) return skip("negative submit time");
  if (*row.run_s < 0) return skip("negative run time");
  if (*row.submit_s > kMostSeconds || *row.run_s > kMostSeconds) return skip("a time that cannot be");
  const double gpus = row.gpus.value_or(0), cpus = row.cpus.value_or(0);
  if (gpus < 0 || cpus < 0 || gpus > kMostGpus || cpus > kMostGpus)
    return skip("a number of GPUs or CPUs that cannot be");
  if (gpus <= 0 && cpus <= 0) return skip("asks for no GPUs and no CPUs");
  TraceJob job;
  job.submit_s = static_cast<int64_t>(std::floor(*row.submit_s));
  job.run_s = std::max<int64_t>(1, std::llround(*row.run_s));
  const double limit = row.limit_s.value_or(0);
  job.limit_s =
      limit > 0 && limit < kMostSeconds ? std::max(job.run_s, static_cast<int64_t>(std::llround(limit))) : 0;
  job.gpus = static_cast<int32_t>(std::ceil(gpus));  // a part of a GPU is one
  job.cpus = static_cast<int32_t>(std::ceil(cpus));
  job.nodes = static_cast<int32_t>(std::clamp(row.nodes.value_or(0), 0.0, kMostGpus));
  job.lab = trace->labs.At(row.lab);
  job.user = trace->users.At(row.user);
  job.partition = trace->partitions.At(row.partition);
  job.type = trace->types.At(row.type);
  job.line = line;
  trace->jobs.push_back(job);
}

}  // namespace overcap
