// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/attempt_folder.h"
#include "agent/keeper_link.h"
#include "agent/options.h"
#include "agent/slurm/srun_ranks.h"
#include "base/result.h"
#include "model/job_spec.h"
#include "sys/clock.h"
#include "sys/supervisor.h"

namespace overcap {

// The stores of a job, from before its ranks until after them: a keeper on each of its nodes holds them
// (docs/formats/mounts.md). Does nothing for a job without mounts.
class MountsStep {
 public:
  // `nodes` of a job on several, this one first; else nullptr.
  MountsStep(const JobSpec& spec, const AgentOptions& options, const AttemptFolder& attempt,
             const SrunSetting* nodes, const Clock& clock, Supervisor* supervisor)
      : spec_(spec),
        options_(options),
        attempt_(attempt),
        nodes_(nodes),
        clock_(clock),
        supervisor_(*supervisor) {}
  // Keepers that still run see that nobody needs them any more.
  ~MountsStep() = default;
  MountsStep(const MountsStep&) = delete;

  // Returns when all mounts are there. `env` is the keepers'.
  Result<void> Prepare(const std::string& code, std::vector<std::string> env);
  // After the ranks. What they wrote and is in no store; "": nothing.
  std::string Release();
  // What the user should know, so far; they are given once.
  std::vector<std::string> TakeNotes();

 private:
  std::vector<std::string> Words(const std::string& code) const;
  Result<KeeperLink::Program> OnOthers(const std::vector<std::string>& words,
                                       const std::vector<std::string>& env) const;
  // Of one whose answer was not that all is there.
  Error GiveUp(KeeperLink::Heard heard, const KeeperLink& link);
  void ReleaseAll();
  void NameSilentNodes();
  std::string LogPath() const { return attempt_.Path() + "/mounts.log"; }

  const JobSpec& spec_;
  const AgentOptions& options_;
  const AttemptFolder& attempt_;
  const SrunSetting* const nodes_;
  const Clock& clock_;
  Supervisor& supervisor_;
  std::optional<KeeperLink> own_, others_;
  std::vector<std::string> notes_, unsaved_;
};

}  // namespace overcap
