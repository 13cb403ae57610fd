// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "agent/attempt_folder.h"
#include "agent/options.h"
#include "base/result.h"
#include "model/job_spec.h"
#include "sys/clock.h"
#include "sys/fd.h"
#include "sys/supervisor.h"

namespace overcap {

// The stores of a job, from before its ranks until after them: a keeper beside the agent holds them
// (docs/formats/mounts.md). Does nothing for a job without mounts.
class MountsStep {
 public:
  MountsStep(const JobSpec& spec, const AgentOptions& options, const AttemptFolder& attempt,
             const Clock& clock, Supervisor* supervisor)
      : spec_(spec), options_(options), attempt_(attempt), clock_(clock), supervisor_(*supervisor) {}
  // A keeper that still runs sees that nobody needs it any more.
  ~MountsStep() = default;
  MountsStep(const MountsStep&) = delete;

  // Returns when all mounts are there. `env` is the keeper's.
  Result<void> Prepare(const std::string& code, const std::vector<std::string>& env);
  // After the ranks. What they wrote and is in no store; "": nothing.
  std::string Release();
  // What the user should know, so far; they are given once.
  std::vector<std::string> TakeNotes() { return std::exchange(notes_, {}); }

 private:
  enum class Word { kNone, kReady, kFailed, kReleased, kGone };
  Result<void> Start(const std::string& code, const std::vector<std::string>& env);
  // Hears the keeper until it says one of the last four, or nothing for too long.
  Word Hear(bool until_cancelled);
  Word Take(const std::string& line);
  bool ReadMore();

  const JobSpec& spec_;
  const AgentOptions& options_;
  const AttemptFolder& attempt_;
  const Clock& clock_;
  Supervisor& supervisor_;
  Fd input_, output_, pidfd_;
  std::string heard_, failure_, unsaved_;
  std::vector<std::string> notes_;
};

}  // namespace overcap
