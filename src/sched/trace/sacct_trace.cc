// SPDX-License-Identifier: Apache-2.0
// What `sacct -P` prints with Submit, Elapsed, User, Account and AllocTRES or ReqTRES among its columns;
// steps are passed over.
#include <algorithm>

#include "base/text.h"
#include "sched/trace/trace_fields.h"

namespace overcap {
namespace {

size_t ColumnAt(const std::vector<std::string_view>& header, std::string_view name) {
  return static_cast<size_t>(std::find(header.begin(), header.end(), name) - header.begin());
}

// "billing=4,cpu=16,gres/gpu=4,gres/gpu:a40=4,node=1".
struct Tres {
  double gpus = 0, cpus = 0, nodes = 0;
  std::string_view type;
};
Tres ParseTres(std::string_view text) {
  Tres tres;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view part = text.substr(0, comma);
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
    const size_t equals = part.rfind('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = part.substr(0, equals);
    const double value = TraceNumber(part.substr(equals + 1)).value_or(0);
    if (name == "cpu") tres.cpus = value;
    if (name == "node") tres.nodes = value;
    if (name == "gres/gpu") tres.gpus = std::max(tres.gpus, value);
    if (name.starts_with("gres/gpu:")) tres.gpus = std::max(tres.gpus, value), tres.type = name.substr(9);
  }
  return tres;
}

}  // namespace

Result<Trace> ReadSacctTrace(std::string_view text) {
  Trace trace;
  TraceLines lines(text);
  std::string_view line;
  std::vector<std::string_view> fields;
  if (!lines.Next(&line)) return Fail(ErrorCode::kUsage, "line 1: there is no header");
  SplitFields(line, '|', &fields);
  const std::vector<std::string_view> header = fields;
  const size_t id = ColumnAt(header, "JobID"), submit = ColumnAt(header, "Submit"),
               limit = ColumnAt(header, "Timelimit");
  const size_t raw = ColumnAt(header, "ElapsedRaw"), user = ColumnAt(header, "User"),
               account = ColumnAt(header, "Account");
  const size_t partition = ColumnAt(header, "Partition");
  const size_t elapsed = raw < header.size() ? raw : ColumnAt(header, "Elapsed");
  const size_t allocated = ColumnAt(header, "AllocTRES"), asked = ColumnAt(header, "ReqTRES");
  const std::string_view missing = submit >= header.size()                       ? "Submit"
                                   : elapsed >= header.size()                    ? "Elapsed"
                                   : account >= header.size()                    ? "Account"
                                   : std::min(allocated, asked) >= header.size() ? "AllocTRES"
                                                                                 : "";
  if (!missing.empty())
    return Fail(
        ErrorCode::kUsage, StrCat("line 1: there is no column '", missing, "'"),
        "sacct -aPX -o JobID,User,Account,Partition,Submit,Elapsed,Timelimit,AllocTRES,ReqTRES,State");
  const auto at = [&](size_t column) { return column < fields.size() ? fields[column] : std::string_view(); };
  while (lines.Next(&line)) {
    if (Trim(line).empty()) continue;
    SplitFields(line, '|', &fields);
    if (fields.size() < header.size()) {
      trace.skips.Add("fewer columns than the header has", lines.number());
      continue;
    }
    if (at(id).find('.') != std::string_view::npos) continue;
    Tres tres = ParseTres(at(allocated));
    if (tres.gpus == 0 && tres.cpus == 0) tres = ParseTres(at(asked));
    TraceRow row;
    row.submit_s = TraceTime(at(submit));
    row.run_s = TraceDuration(at(elapsed));
    row.limit_s = TraceDuration(at(limit));
    row.gpus = tres.gpus, row.cpus = tres.cpus, row.nodes = tres.nodes;
    row.user = at(user), row.lab = at(account), row.partition = at(partition), row.type = tres.type;
    if (row.run_s && *row.run_s == 0) {
      trace.skips.Add("never ran", lines.number());
      continue;
    }
    AddTraceRow(row, lines.number(), &trace);
  }
  return trace;
}

}  // namespace overcap
