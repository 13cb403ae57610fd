// SPDX-License-Identifier: Apache-2.0
// What Slurm itself says about the job that the agent runs in. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sys/variables.h"

namespace overcap {

struct SlurmJobFacts {
  std::string state;          // "RUNNING"; "COMPLETING" when it is being ended, whatever for
  int restarts = 0;           // more than this start's: Slurm will start it again
  bool preempted = false;     // it shall make room for another job
  int64_t start_us = 0;       // of this start, unless it is to be started again; 0: not told
  int64_t limit_seconds = 0;  // 0: none, or not told
  bool operator==(const SlurmJobFacts&) const = default;
};

// The words that ask for them; `name` is SlurmStart::Name(). One look at one job.
std::vector<std::string> SlurmFactsCommand(const std::string& name);
// nullopt: Slurm does not know the job, or says nothing that is understood.
std::optional<SlurmJobFacts> ParseSlurmFacts(std::string_view text);

// The variables for Slurm's programs: those of this process, without what changes the questions.
std::vector<std::string> SlurmToolVariables(const Variables& own);

// KillWait of slurm.conf, in seconds: so long after TERM comes KILL.
int64_t KillWaitSeconds(std::string_view slurm_conf);

}  // namespace overcap
