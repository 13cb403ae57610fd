// SPDX-License-Identifier: Apache-2.0
// How an attempt under Slurm ended, and whether the job is to be started again. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/slurm/slurm_facts.h"
#include "model/agent_report.h"
#include "model/job_spec.h"

namespace overcap {

// What was seen while the ranks ran.
struct StopEvidence {
  Ending ranks;                        // kCancelled: they were told to stop; kLost: a node of theirs failed
  std::optional<std::string> cancel;   // there is a cancel.json; why, for people
  bool told = false;                   // TERM has come to the agent
  bool warned = false;                 // USR1 has come
  bool replaced = false;               // Slurm has begun a later start of the job elsewhere
  bool before_limit = false;           // the agent itself has ended them, just before the time limit
  std::optional<SlurmJobFacts> facts;  // asked for after the first signal, or at the end
  int restart = 0;                     // SLURM_RESTART_COUNT
  int64_t begin_us = 0, now_us = 0;    // of this start of the agent; since 1970
};

struct SlurmVerdict {
  Ending ending;
  std::string requeue;  // why it is started again: "preempted", "time limit", "node failed"; empty: it is not
  bool ask = false;     // Slurm does not do that by itself: it must be asked
};

SlurmVerdict JudgeEnd(const JobSpec& spec, const StopEvidence& evidence);

// Whether ranks ended as those do that are told to stop. Slurm signals all processes of a batch script, and a
// rank may be dead before the agent has seen a signal.
bool EndedLikeStopped(const Ending& ranks);

// Whether Slurm must be asked after the end of the ranks: those of a job that is to be started again after a
// preemption may have been ended by Slurm itself, without a word to the agent.
bool WantsFacts(const JobSpec& spec, const StopEvidence& evidence);

// When the ranks must be ended for the job to be started again before its time limit; 0: never.
int64_t StopBeforeLimitUs(const JobSpec& spec, const std::optional<SlurmJobFacts>& facts,
                          int64_t known_end_us, int64_t grace_us);

// Whether the last two attempts and this one, `latest` first, have all ended for this reason within a minute
// of their start: then it is in vain to start again.
bool EndsTooSoon(const std::vector<AgentReport>& latest, const std::string& why, int64_t lasted_us);

}  // namespace overcap
