// SPDX-License-Identifier: Apache-2.0
#include "control/job_notes.h"

#include "base/text.h"
#include "model/agent_report.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

constexpr size_t kMostNotes = 20;
constexpr int kMostReports = 100;
constexpr int64_t kMostBytes = 16 << 20;

}  // namespace

std::vector<std::string> ReadJobNotes(const JobRecord& record) {
  std::vector<std::string> notes;
  if (record.dir.empty() || record.attempt == 0) return notes;
  for (int slot = 0; slot < kMostReports; ++slot) {
    const std::string path = StrCat(record.dir, "/attempt-", record.attempt, "/agent-", slot, ".jsonl");
    const auto text = PosixFiles().ReadRange(path, 0, kMostBytes);
    if (!text) break;
    AgentReport report = ParseAgentReport(*text);
    notes.insert(notes.end(), report.notes.begin(), report.notes.end());
  }
  if (notes.size() > kMostNotes) notes.erase(notes.begin(), notes.end() - kMostNotes);
  return notes;
}

}  // namespace overcap
