// SPDX-License-Identifier: Apache-2.0
#include "clusters/local/records.h"

#include <charconv>

#include "base/json_scan.h"
#include "base/text.h"

namespace overcap {
namespace {

using Cells = std::vector<std::string_view>;

// In the order of kBriefColumns.
enum Column {
  kId,
  kUser,
  kName,
  kState,
  kReason,
  kAttempt,
  kExitStatus,
  kCommand,
  kGpus,
  kNodes,
  kSubmitted,
  kStarted,
  kEnded,
  kArray,
  kColumns
};

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

JobRecord BriefRecord(const Cells& cells, Cells* words) {
  JobRecord record;
  record.spec.id = Bytes(cells[kId]);
  record.spec.user = Bytes(cells[kUser]);
  record.spec.name = Bytes(cells[kName]);
  const std::string state = Bytes(cells[kState]);
  record.state = JobStateFromName(state).value_or(JobState::kUnknown);
  if (record.state == JobState::kUnknown) record.raw_state = state;
  record.reason = Bytes(cells[kReason]);
  record.attempt = Number(cells[kAttempt], 0);
  record.exit_status = Number(cells[kExitStatus], -1);
  JsonElements(cells[kCommand], words);
  for (const std::string_view word : *words) record.spec.command.push_back(Bytes(word));
  record.spec.resources.gpus = Number(cells[kGpus], 0);
  record.spec.resources.nodes = Number(cells[kNodes], 1);
  record.spec.submitted_us = Time(cells[kSubmitted]);
  record.started_us = Time(cells[kStarted]);
  record.ended_us = Time(cells[kEnded]);
  if (cells[kArray].size() > 2) {
    if (auto array = ParseArraySpec(Bytes(cells[kArray]))) record.spec.array = std::move(*array);
  }
  return record;
}

tl::unexpected<Error> Unreadable() {
  return Fail(ErrorCode::kInternal, "the engine's list of jobs cannot be read");
}

}  // namespace

const std::string_view kBriefColumns =
    R"(["id","user","name","state","reason","attempt","exit_status","argv","gpus","nodes","submitted_us","started_us","ended_us","array"])";

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

Result<std::vector<JobRecord>> ReadBriefRecords(std::string_view reply) {
  const std::string_view rows = JsonMember(reply, "rows");
  if (!rows.starts_with('[')) return Unreadable();
  std::vector<JobRecord> records;
  Cells cells, words;
  for (const std::string_view row : JsonElements(rows)) {
    JsonElements(row, &cells);
    if (cells.size() != kColumns) return Unreadable();
    records.push_back(BriefRecord(cells, &words));
  }
  return records;
}

}  // namespace overcap
