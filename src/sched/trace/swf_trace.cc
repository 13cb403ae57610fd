// SPDX-License-Identifier: Apache-2.0
// The Standard Workload Format: 18 numbers a line, -1 for what is not known. A processor counts as a GPU.
#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "sched/trace/trace_fields.h"

namespace overcap {
namespace {

constexpr size_t kFields = 18;

void SplitBlanks(std::string_view line, std::vector<std::string_view>* fields) {
  fields->clear();
  for (size_t at = 0; at < line.size();) {
    while (at < line.size() && std::isspace(static_cast<unsigned char>(line[at]))) ++at;
    const size_t begin = at;
    while (at < line.size() && !std::isspace(static_cast<unsigned char>(line[at]))) ++at;
    if (at > begin) fields->push_back(line.substr(begin, at - begin));
  }
}

}  // namespace

Result<Trace> ReadSwfTrace(std::string_view text) {
  Trace trace;
  TraceLines lines(text);
  std::string_view line;
  std::vector<std::string_view> fields;
  bool any = false;
  while (lines.Next(&line)) {
    SplitBlanks(line, &fields);
    if (fields.empty() || fields[0][0] == ';') continue;
    if (fields.size() < kFields) {
      if (!any)
        return Fail(ErrorCode::kUsage,
                    StrCat("line ", lines.number(), ": SWF has 18 fields, there are ", fields.size()));
      trace.skips.Add("fewer than 18 fields", lines.number());
      continue;
    }
    any = true;
    TraceRow row;
    row.submit_s = TraceNumber(fields[1]);
    row.run_s = TraceNumber(fields[3]);
    row.gpus = TraceNumber(fields[4]);
    if (!row.gpus || *row.gpus <= 0) row.gpus = TraceNumber(fields[7]);
    if (row.gpus && *row.gpus < 0) row.gpus = std::nullopt;
    row.limit_s = TraceNumber(fields[8]);
    row.user = fields[11], row.lab = fields[12];
    AddTraceRow(row, lines.number(), &trace);
  }
  return trace;
}

}  // namespace overcap
