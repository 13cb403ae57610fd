// SPDX-License-Identifier: Apache-2.0
// When the first node of an elastic job on Slurm is lost, the job's own agent is lost with it, and Slurm lets
// the rest of the job run: one of the other nodes speaks in its place.
#pragma once

#include <string>
#include <string_view>

#include "agent/courier/courier.h"
#include "base/result.h"
#include "model/agent_report.h"

namespace overcap {

// Whether the agent of another node ended because it could not find its leader any more; `events` is its
// events.jsonl.
bool EndedWithoutLeader(std::string_view events);

// Where the next line of a report belongs, whose writer was killed: room that it had taken is not text.
struct ReportEnd {
  size_t offset = 0;
  bool torn = false;  // the last line was cut off
};
ReportEnd EndOfReport(std::string_view text);

struct LostHead {
  std::string attempt_folder;
  std::string head;      // its name
  std::string slurm_id;  // of the job
  Courier* courier;      // of a job that goes through a store; nullptr: its folder is seen from everywhere
};

// Reports the attempt as lost and has Slurm start the job again, or end it. Whoever of the other nodes comes
// first does it; nothing is done when the job's agent has told how it ended.
Result<void> SpeakForHead(const LostHead& lost);

// After the agent of another node has ended as one does that has no leader.
Result<void> CheckHead(const std::string& attempt_folder, int node, Courier* courier);

}  // namespace overcap
