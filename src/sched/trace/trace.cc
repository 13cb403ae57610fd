// SPDX-License-Identifier: Apache-2.0
#include "sched/trace/trace.h"

#include "base/text.h"
#include "sched/trace/trace_fields.h"

namespace overcap {

int32_t TraceNames::At(std::string_view name) {
  const auto [found, is_new] = index_.try_emplace(std::string(name), static_cast<int32_t>(names_.size()));
  if (is_new) names_.emplace_back(name);
  return found->second;
}

void TraceSkips::Add(const std::string& reason, uint32_t line) {
  Entry& entry = entries_[reason];
  ++entry.count;
  if (entry.lines.size() < kMostLines) entry.lines.push_back(line);
}

int64_t TraceSkips::count() const {
  int64_t all = 0;
  for (const auto& [reason, entry] : entries_) all += entry.count;
  return all;
}

std::vector<std::string> TraceSkips::Words() const {
  std::vector<std::string> words;
  for (const auto& [reason, entry] : entries_) {
    std::vector<std::string> lines;
    for (const uint32_t line : entry.lines) lines.push_back(std::to_string(line));
    const int64_t more = entry.count - static_cast<int64_t>(entry.lines.size());
    words.push_back(StrCat(CountOf(entry.count, "job"), " skipped: ", reason, " (line",
                           entry.count == 1 ? " " : "s ", Join(lines, ", "),
                           more > 0 ? StrCat(" and ", more, " more") : "", ")"));
  }
  return words;
}

Result<TraceFormat> GuessTraceFormat(std::string_view text) {
  TraceLines lines(text);
  std::string_view line;
  while (lines.Next(&line) && Trim(line).empty()) {
  }
  if (line.size() > 10 && line[8] == ' ' && line[9] == '{') return TraceFormat::kJournal;
  const bool comment = line.starts_with(';');  // SWF begins with such lines
  if (!comment && line.find('|') != std::string_view::npos) return TraceFormat::kSacct;
  if (!comment && line.find(',') != std::string_view::npos) return TraceFormat::kCsv;
  return Fail(ErrorCode::kUsage, "its format must be CSV, the output of 'sacct -P', or the engine's journal",
              "the formats page 'traces' shows how to write SWF as CSV");
}

Result<TraceFormat> TraceFormatNamed(std::string_view name) {
  if (name == "csv") return TraceFormat::kCsv;
  if (name == "sacct") return TraceFormat::kSacct;
  if (name == "journal") return TraceFormat::kJournal;
  return Fail(ErrorCode::kUsage, StrCat("there is no trace format ", Quoted(name)),
              "there are: csv, sacct, journal");
}

Result<Trace> ReadTrace(std::string_view text, TraceFormat format, const ColumnMap& columns) {
  switch (format) {
    case TraceFormat::kSacct:
      return ReadSacctTrace(text);
    case TraceFormat::kJournal:
      return ReadJournalTrace(text);
    case TraceFormat::kCsv:
      break;
  }
  return ReadCsvTrace(text, columns);
}

}  // namespace overcap
