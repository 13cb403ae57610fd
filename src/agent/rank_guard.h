// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/options.h"
#include "model/job_spec.h"
#include "sys/cgroup.h"
#include "sys/supervisor.h"

namespace overcap {

// Holds the ranks of an attempt to their time, memory and processors: by a control group where the machine
// lets us make one, else by looking. Makes a group only for jobs that asked for memory or processors.
class RankGuard {
 public:
  RankGuard(const JobSpec& spec, const AgentOptions& options);
  ~RankGuard();  // removes the group with all that is left in it
  RankGuard(const RankGuard&) = delete;
  RankGuard& operator=(const RankGuard&) = delete;

  std::vector<std::string> ProcsFiles() const;  // what each rank joins
  GroupLimits Limits() const;                   // refers to this object
  void Begin();  // before each run of the ranks: what happened to those of an earlier task is over
  bool KernelKilled() const;                                  // one of this run, for want of memory
  const std::string& PinError() const { return pin_error_; }  // why the processors could not be set; or ""

 private:
  bool OverMemory() const;
  void ReleaseEngines() const;
  void KillGroup() const;

  Resources resources_;
  std::string pin_error_;
  mutable std::optional<Cgroup> cgroup_;
  int64_t kills_before_ = 0;  // the group lives as long as the agent, and its counter only grows
};

}  // namespace overcap
