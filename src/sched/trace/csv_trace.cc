// SPDX-License-Identifier: Apache-2.0
// A table with a header line; which column is what is told, or found by the usual names.
#include <algorithm>
#include <array>

#include "base/text.h"
#include "sched/trace/trace_fields.h"

namespace overcap {
namespace {

struct FieldNames {
  std::string_view field;
  std::vector<std::string_view> usual;
};

const std::vector<FieldNames>& Fields() {
  static const std::vector<FieldNames> fields = {
      {"submit", {"submit", "submit_time", "submitted", "timestamp", "creation_time"}},
      {"run", {"run", "duration", "run_time", "runtime", "elapsed"}},
      {"end", {"end", "end_time", "deletion_time", "finish_time"}},
      {"limit", {"limit", "time_limit", "timelimit", "requested_time"}},
      {"gpus", {"gpus", "num_gpus", "num_gpu", "gpu_num", "gpu"}},
      {"nodes", {"nodes", "num_nodes", "node_num"}},
      {"cpus", {"cpus", "num_cpus", "num_cpu", "cpu_num"}},
      {"lab", {"lab", "account", "cluster", "vc", "group"}},
      {"user", {"user", "user_name"}},
      {"partition", {"partition", "queue"}},
      {"type", {"type", "gpu_type", "gpu_spec"}},
  };
  return fields;
}

struct Column {
  size_t at = ~size_t{0};  // none
  double factor = 1;       // to seconds, or to one
  bool there() const { return at != ~size_t{0}; }
};

Result<Column> ColumnNamed(std::string_view told, const std::vector<std::string_view>& header) {
  Column column;
  if (const size_t colon = told.rfind(':'); colon != std::string_view::npos) {
    const std::string_view unit = told.substr(colon + 1);
    column.factor = unit == "ms"      ? 1e-3
                    : unit == "us"    ? 1e-6
                    : unit == "min"   ? 60
                    : unit == "h"     ? 3600
                    : unit == "milli" ? 1e-3
                                      : 0;
    if (unit == "s") column.factor = 1;
    if (column.factor == 0)
      return Fail(ErrorCode::kUsage, StrCat("column '", told, "': there is no unit ", Quoted(unit)),
                  "there are: s, ms, us, min, h, milli");
    told = told.substr(0, colon);
  }
  const auto found = std::find(header.begin(), header.end(), told);
  if (found == header.end()) {
    std::vector<std::string> names(header.begin(), header.end());
    for (std::string& name : names) name = ToUtf8(name.substr(0, 40));
    if (names.size() > 20) names.resize(20);
    return Fail(ErrorCode::kUsage, StrCat("line 1: there is no column ", Quoted(told)),
                StrCat("there are: ", Join(names, ", ")));
  }
  column.at = static_cast<size_t>(found - header.begin());
  return column;
}

using Columns = std::map<std::string_view, Column>;

Result<Columns> FindColumns(const std::vector<std::string_view>& header, const ColumnMap& told) {
  Columns columns;
  for (const FieldNames& field : Fields()) {
    Column& column = columns[field.field];
    if (const auto named = told.find(std::string(field.field)); named != told.end()) {
      OC_TRY(found, ColumnNamed(named->second, header));
      column = found;
      continue;
    }
    for (const std::string_view name : field.usual) {
      const auto found = std::find(header.begin(), header.end(), name);
      if (found == header.end() || column.there()) continue;
      column.at = static_cast<size_t>(found - header.begin());
    }
  }
  for (const std::string_view must : {"submit", "run"}) {
    if (columns[must].there() || (must == "run" && columns["end"].there())) continue;
    return Fail(ErrorCode::kUsage, StrCat("line 1: no column says the ", must, " time"),
                StrCat("--columns ", must, "=NAME says which one it is"));
  }
  if (!columns["gpus"].there() && !columns["cpus"].there())
    return Fail(ErrorCode::kUsage, "line 1: no column says the number of GPUs",
                "--columns gpus=NAME says which one it is");
  return columns;
}

}  // namespace

Result<ColumnMap> ParseColumnMap(std::string_view text) {
  ColumnMap columns;
  if (Trim(text).empty()) return columns;
  std::vector<std::string> known;
  for (const FieldNames& field : Fields()) known.emplace_back(field.field);
  for (const std::string& pair : Split(text, ',')) {
    const size_t equals = pair.find('=');
    const std::string field(Trim(std::string_view(pair).substr(0, equals)));
    if (equals == std::string::npos || std::find(known.begin(), known.end(), field) == known.end())
      return Fail(ErrorCode::kUsage, StrCat(Quoted(pair, 100), " does not say which column is what"),
                  StrCat("write FIELD=COLUMN with one of: ", Join(known, ", ")));
    columns[field] = std::string(Trim(std::string_view(pair).substr(equals + 1)));
  }
  return columns;
}

Result<Trace> ReadCsvTrace(std::string_view text, const ColumnMap& told) {
  Trace trace;
  TraceLines lines(text);
  std::string_view line;
  std::vector<std::string_view> fields;
  if (!lines.Next(&line)) return Fail(ErrorCode::kUsage, "line 1: there is no header");
  if (line.starts_with("\xef\xbb\xbf")) line.remove_prefix(3);
  SplitFields(line, ',', &fields);
  const std::vector<std::string_view> header = fields;
  OC_TRY(columns, FindColumns(header, told));
  const Column submit = columns["submit"], run = columns["run"], end = columns["end"],
               limit = columns["limit"];
  const Column gpus = columns["gpus"], nodes = columns["nodes"], cpus = columns["cpus"];
  const Column lab = columns["lab"], user = columns["user"], partition = columns["partition"],
               type = columns["type"];
  const auto text_of = [&](const Column& column) {
    return column.there() ? fields[column.at] : std::string_view();
  };
  const auto scaled = [](std::optional<double> value, const Column& column) {
    if (value) *value *= column.factor;
    return value;
  };
  const auto number = [&](const Column& column) -> std::optional<double> {
    return column.there() ? scaled(TraceDuration(fields[column.at]), column) : std::nullopt;
  };
  while (lines.Next(&line)) {
    if (Trim(line).empty()) continue;
    SplitFields(line, ',', &fields);
    if (fields.size() < header.size()) {
      trace.skips.Add("fewer columns than the header has", lines.number());
      continue;
    }
    TraceRow row;
    row.submit_s = scaled(TraceTime(text_of(submit)), submit);
    row.run_s = number(run);
    if (!run.there() && row.submit_s) {
      const auto ended = scaled(TraceTime(text_of(end)), end);
      if (ended) row.run_s = *ended - *row.submit_s;
    }
    row.limit_s = number(limit);
    row.gpus = number(gpus);
    row.nodes = number(nodes);
    row.cpus = number(cpus);
    row.lab = text_of(lab), row.user = text_of(user), row.partition = text_of(partition),
    row.type = text_of(type);
    AddTraceRow(row, lines.number(), &trace);
  }
  return trace;
}

}  // namespace overcap
