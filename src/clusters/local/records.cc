// SPDX-License-Identifier: Apache-2.0
#include "clusters/local/records.h"

#include <charconv>
#include <span>

#include "base/json_scan.h"
#include "base/text.h"

namespace overcap {
namespace {

// A string, also one that travels as {"hex": "..."}.
std::string Bytes(std::string_view cell) {
  if (auto text = JsonString(cell)) return std::move(*text);
  const std::string hex = JsonString(JsonMember(cell, "hex")).value_or("");
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    unsigned byte = 0;
    std::from_chars(hex.data() + i, hex.data() + i + 2, byte, 16);
    bytes.push_back(static_cast<char>(byte));
  }
  return bytes;
}

int Number(std::string_view cell, int absent) {
  return static_cast<int>(ParseInt(cell).value_or(absent));
}
int64_t Time(std::string_view cell) {
  return ParseInt(cell).value_or(0);
}

void ReadState(std::string_view cell, JobRecord& record) {
  const std::string name = Bytes(cell);
  const auto state = JobStateFromName(name);
  record.state = state.value_or(JobState::kUnknown);
  if (!state) record.raw_state = name;
}

void ReadArray(std::string_view cell, JobRecord& record) {
  if (cell.size() <= 2) return;
  if (auto array = ParseArraySpec(Bytes(cell))) record.spec.array = std::move(*array);
}

void ReadCommand(std::string_view cell, JobRecord& record) {
  for (const std::string_view word : JsonElements(cell)) record.spec.command.push_back(Bytes(word));
}

// A column of the engine's lists and the place of its value.
struct Column {
  std::string_view name;
  void (*read)(std::string_view cell, JobRecord& record);
};

constexpr Column kTableColumns[] = {
    {"id", [](std::string_view cell, JobRecord& record) { record.spec.id = Bytes(cell); }},
    {"user", [](std::string_view cell, JobRecord& record) { record.spec.user = Bytes(cell); }},
    {"lab", [](std::string_view cell, JobRecord& record) { record.spec.lab = Bytes(cell); }},
    {"partition", [](std::string_view cell, JobRecord& record) { record.partition = Bytes(cell); }},
    {"name", [](std::string_view cell, JobRecord& record) { record.spec.name = Bytes(cell); }},
    {"state", ReadState},
    {"reason", [](std::string_view cell, JobRecord& record) { record.reason = Bytes(cell); }},
    {"attempt", [](std::string_view cell, JobRecord& record) { record.attempt = Number(cell, 0); }},
    {"exit_status", [](std::string_view cell, JobRecord& record) { record.exit_status = Number(cell, -1); }},
    {"argv", ReadCommand},
    {"gpus", [](std::string_view cell, JobRecord& record) { record.spec.resources.gpus = Number(cell, 0); }},
    {"nodes",
     [](std::string_view cell, JobRecord& record) { record.spec.resources.nodes = Number(cell, 1); }},
    {"submitted_us", [](std::string_view cell, JobRecord& record) { record.spec.submitted_us = Time(cell); }},
    {"started_us", [](std::string_view cell, JobRecord& record) { record.started_us = Time(cell); }},
    {"ended_us", [](std::string_view cell, JobRecord& record) { record.ended_us = Time(cell); }},
    {"array", ReadArray},
};

constexpr Column kStoredColumns[] = {
    {"id", [](std::string_view cell, JobRecord& record) { record.spec.id = Bytes(cell); }},
    {"state", ReadState},
    {"snapshot", [](std::string_view cell, JobRecord& record) { record.spec.snapshot = Bytes(cell); }},
    {"environment", [](std::string_view cell, JobRecord& record) { record.spec.environment = Bytes(cell); }},
};

std::span<const Column> ColumnsOf(ListDetail detail) {
  return detail == ListDetail::kStored ? std::span<const Column>(kStoredColumns)
                                       : std::span<const Column>(kTableColumns);
}

tl::unexpected<Error> Unreadable() {
  return Fail(ErrorCode::kInternal, "the engine's list of jobs cannot be read");
}

}  // namespace

std::string ListColumns(ListDetail detail) {
  std::vector<std::string> names;
  for (const Column& column : ColumnsOf(detail)) names.push_back(StrCat("\"", column.name, "\""));
  return StrCat("[", Join(names, ","), "]");
}

Result<std::vector<JobRecord>> ReadRecords(std::string_view reply) {
  const std::string_view jobs = JsonMember(reply, "jobs");
  if (!jobs.starts_with('[')) return Unreadable();
  std::vector<JobRecord> records;
  for (const std::string_view job : JsonElements(jobs)) {
    OC_TRY(record, RecordFromJson(job));
    records.push_back(std::move(record));
  }
  return records;
}

Result<std::vector<JobRecord>> ReadRows(std::string_view reply, ListDetail detail) {
  const std::string_view rows = JsonMember(reply, "rows");
  if (!rows.starts_with('[')) return Unreadable();
  const std::span<const Column> columns = ColumnsOf(detail);
  const std::vector<std::string_view> lines = JsonElements(rows);
  std::vector<JobRecord> records(lines.size());
  std::vector<std::string_view> cells;
  for (size_t row = 0; row < lines.size(); ++row) {
    JsonElements(lines[row], &cells);
    if (cells.size() != columns.size()) return Unreadable();
    for (size_t i = 0; i < cells.size(); ++i) columns[i].read(cells[i], records[row]);
  }
  return records;
}

}  // namespace overcap
