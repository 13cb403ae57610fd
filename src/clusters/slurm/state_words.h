// SPDX-License-Identifier: Apache-2.0
// What Slurm's words for the state of a job mean here.
#pragma once

#include <string>
#include <string_view>

#include "model/job_state.h"

namespace overcap {

struct SlurmState {
  JobState state = JobState::kUnknown;
  std::string word;  // Slurm's own, whole: "CANCELLED" for "CA", "CANCELLED by 1000" and "CANCELLED+"
  bool ended =
      false;  // this start of the job is over; Slurm itself will do no more with it unless it requeues
  std::string reason;  // in plain words; empty where the state says it all
};

// A long word ("OUT_OF_MEMORY"), a short code ("OOM"), "CANCELLED by 1000", or a word cut by sacct's columns
// ("OUT_OF_ME+"). A word that is not known is kUnknown, and kept.
SlurmState ReadSlurmState(std::string_view raw);

// The same with the reason that squeue or sacct give beside it: a pending job may be held, and the reason
// says why it waits.
SlurmState ReadSlurmState(std::string_view raw, std::string_view raw_reason);

// How a batch script ended: "3:0" (status:signal), or the number that wait() gives, as squeue prints it
// ("768").
struct SlurmExit {
  int status = 0;
  int signal = 0;
  bool operator==(const SlurmExit&) const = default;
};
SlurmExit ReadSlurmExit(std::string_view text);

// Of a job that has ended. The exit status is -1 where Slurm's 0 means nothing (it ended the job itself).
Ending ReadSlurmEnding(std::string_view raw_state, const SlurmExit& exit, std::string_view raw_reason);

}  // namespace overcap
