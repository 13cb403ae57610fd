// SPDX-License-Identifier: Apache-2.0
// A history of jobs, whoever wrote it down (docs/formats/traces.md). Readers are text in, records out.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"

namespace overcap {

// One job as it was: 64 bytes, there may be millions.
struct TraceJob {
  int64_t submit_s = 0;
  int64_t run_s = 0;
  int64_t limit_s = 0;    // 0: not told
  int32_t gpus = 0;       // in all
  int32_t nodes = 0;      // 0: not told
  int32_t cpus = 0;       // in all; 0: not told
  int32_t lab = 0;        // in Trace::labs
  int32_t user = 0;       // in Trace::users
  int32_t partition = 0;  // in Trace::partitions; the first is "": not told
  int32_t type = 0;       // in Trace::types, expressions; the first is ""
  uint32_t line = 0;      // of the file
};

// Names, each once.
class TraceNames {
 public:
  int32_t At(std::string_view name);
  const std::vector<std::string>& all() const { return names_; }

 private:
  std::vector<std::string> names_;
  std::unordered_map<std::string, int32_t> index_;
};

// Jobs that are left out, by reason.
class TraceSkips {
 public:
  struct Entry {
    int64_t count = 0;
    std::vector<uint32_t> lines;  // the first few
  };
  void Add(const std::string& reason, uint32_t line);
  int64_t count() const;
  const std::map<std::string, Entry>& all() const { return entries_; }
  // "3 jobs skipped: negative run time (lines 4, 7 and 1 more)".
  std::vector<std::string> Words() const;

 private:
  static constexpr size_t kMostLines = 5;
  std::map<std::string, Entry> entries_;
};

struct Trace {
  std::vector<TraceJob> jobs;
  TraceNames labs, users, partitions, types;
  TraceSkips skips;
  Trace() { partitions.At(""), types.At(""); }
};

enum class TraceFormat { kCsv, kSacct, kJournal };
// By its first lines; kUsage when they are of none of these formats.
Result<TraceFormat> GuessTraceFormat(std::string_view text);
Result<TraceFormat> TraceFormatNamed(std::string_view name);

// Which column of a CSV file is what: "submit=timestamp,run=duration:ms,gpus=num_gpus,lab=cluster". Columns
// that are not named are found by their usual names. kUsage for a field that there is not.
using ColumnMap = std::map<std::string, std::string>;
Result<ColumnMap> ParseColumnMap(std::string_view text);

// kUsage with the line when the text as a whole is not what it should be: no header, columns that are
// missing.
Result<Trace> ReadCsvTrace(std::string_view text, const ColumnMap& columns);
Result<Trace> ReadSacctTrace(std::string_view text);
Result<Trace> ReadJournalTrace(std::string_view text);
Result<Trace> ReadTrace(std::string_view text, TraceFormat format, const ColumnMap& columns);

}  // namespace overcap
