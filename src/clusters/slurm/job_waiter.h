// SPDX-License-Identifier: Apache-2.0
// Waits for jobs: looks at their folders often, which costs the controller nothing, and at the queue rarely.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "clusters/cluster.h"
#include "clusters/slurm/slurm_jobs.h"

namespace overcap {

class JobWaiter {
 public:
  JobWaiter(SlurmContext* context, SlurmJobs* jobs) : context_(context), jobs_(jobs) {}

  // As Cluster::Wait().
  Result<bool> Wait(const std::vector<std::string>& ids, WaitUntil until, int64_t timeout_seconds);

 private:
  Result<void> ReadQueue();
  Result<void> GlanceAtFolders();
  Result<void> LookAtSilent();
  bool Reached(const JobRecord& record) const;
  int64_t PauseUs() const;

  SlurmContext* context_;
  SlurmJobs* jobs_;
  WaitUntil until_ = WaitUntil::kEnded;
  std::vector<std::string> left_;  // that have not come so far
  int64_t glance_us_ = 0;          // what the last look at all folders took
  int64_t next_look_us_ = 0, look_pause_us_ = 0;
  bool network_ = false;  // folders stand on a network file system
};

}  // namespace overcap
