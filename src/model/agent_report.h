// SPDX-License-Identifier: Apache-2.0
// What an agent reports: the lines of agent-S.jsonl and agent-S.claim (docs/formats/job-folder.md), written
// and read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "model/job_state.h"

namespace overcap {

// The process that owns a slot; pid alone is not enough, pids come again.
struct Claim {
  int64_t pid = 0;
  int64_t start_ticks = 0;
  std::string boot_id;
  std::string by = "agent";  // or "daemon"; only in agent-S.claim
  // The start of a batch script that runs it: the id of the Slurm job (of the task, in an array) and how
  // often Slurm had started that before. Only in agent-S.claim; 0: no job of Slurm.
  int64_t slurm_id = 0;
  int slurm_restart = 0;
  std::string nodes = {};  // of that job, as Slurm writes them: "n[1-2]"; only in agent-S.claim
  std::string host = {};   // OwnHost() of that process; only in agent-S.claim; "": not recorded
  bool operator==(const Claim&) const = default;
};
std::string ClaimToJson(const Claim& claim);
Result<Claim> ClaimFromJson(std::string_view json);

struct RankEnd {
  int rank = 0;
  int exit_status = 0;
  int signal = 0;
  int64_t at_us = 0;
  bool operator==(const RankEnd&) const = default;
};

// The latest try of one task; kRunning: begun and not ended.
struct TaskResult {
  int task = 0;
  int attempt = 1;  // `try` of the lines
  Ending ending = {};
  int64_t last_us = 0;  // of its latest line
  bool operator==(const TaskResult&) const = default;
};

struct AgentReport {
  std::optional<Claim> claim;
  bool started = false;
  int64_t started_us = 0;
  std::vector<int64_t> pids;
  int master_port = 0;
  std::vector<RankEnd> rank_ends;  // in the order in which they ended
  std::vector<TaskResult> tasks;   // in the order of their first start
  std::vector<std::string> notes;
  std::optional<Ending> end;
  int64_t ended_us = 0;
  std::string requeue;    // why the cluster was asked to start the job again ("preempted"); empty: it was not
  int64_t last_us = 0;    // the latest `t` of any line
  int damaged_lines = 0;  // lines that are no event; skipped
  bool operator==(const AgentReport&) const = default;
};

// Reads a report while it grows.
class AgentReportReader {
 public:
  // `bytes` begins where the last call stopped. Takes whole lines only and returns how many bytes they were:
  // a torn last line and the NULs behind it are left, to be given again together with what follows.
  size_t Feed(std::string_view bytes);
  const AgentReport& report() const { return report_; }
  AgentReport Take() { return std::move(report_); }

 private:
  void TakeLine(std::string_view line);
  TaskResult* Task(int task, int attempt, int64_t at_us);

  AgentReport report_;
  std::unordered_map<int, size_t> task_places_;
};

AgentReport ParseAgentReport(std::string_view text);

// One line each, with its newline.
std::string ClaimedLine(int64_t now_us, const Claim& claim);
std::string StartedLine(int64_t now_us, const std::vector<int64_t>& pids, int master_port);
std::string RankEndLine(const RankEnd& end);
std::string NoteLine(int64_t now_us, std::string_view text);
std::string TaskStartLine(int64_t now_us, int task, int attempt);
std::string TaskEndLine(int64_t now_us, int task, int attempt, const Ending& ending);
// Before the end: the cluster is asked next to start the job again. NotRequeuedLine() takes that back, after
// the end: the cluster said no, in these words (a note).
std::string RequeueLine(int64_t now_us, std::string_view why);
std::string NotRequeuedLine(int64_t now_us, std::string_view text);
std::string EndLine(int64_t now_us, const Ending& ending);

}  // namespace overcap
