// SPDX-License-Identifier: Apache-2.0
// All that is known of one job from its folder, before anybody has judged it. Data only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/agent_report.h"
#include "model/job_spec.h"

namespace overcap {

// Which job of Slurm it is.
struct SlurmHandle {
  std::string cluster;
  int64_t slurm_id = 0;  // of an array: the array's own
  std::string made_by;   // "submit", "agent"
  int64_t at_us = 0;     // 0: not told
  bool operator==(const SlurmHandle&) const = default;
};

struct CancelWish {
  int64_t at_us = 0;
  std::string by, reason;
};

// The last `hold` or `release`: newer than what the queue says for some seconds.
struct HoldAct {
  int64_t at_us = 0;
  bool held = false;
};

// What the agent of one start reports.
struct AttemptReport {
  int attempt = 0, slot = 0;  // 0: there is none
  int64_t slurm_id = 0;       // of that start; 0: not told
  int slurm_restart = 0;
  std::string nodes;  // "n[1-2]"; "": not told
  AgentReport report;
  int64_t touched_us = 0;  // when it last gave a sign of life
  std::vector<int> gpus;   // of its first node, where told
};

struct JobEvidence {
  JobSpec spec;
  std::string folder;
  std::optional<SlurmHandle> handle;
  // Without a handle: whether somebody waits for Slurm's answer now, and when it was written down to be sent.
  bool sending = false;
  int64_t made_us = 0;
  std::optional<CancelWish> cancel;
  std::optional<HoldAct> hold;
  AttemptReport last;                // a plain job's last attempt
  std::vector<AttemptReport> slots;  // an array's, by slot
};

}  // namespace overcap
