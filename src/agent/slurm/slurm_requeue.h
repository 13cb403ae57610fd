// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace overcap {

struct RequeueRequest {
  std::string mark;  // a file that is made before anything is asked: it is asked once, whatever happens
  std::string why;
  std::string name;                // SlurmStart::Name()
  bool allow_first = false;        // the job was submitted so that it is not requeued; that is changed first
  std::vector<std::string> tools;  // variables of Slurm's programs
};

// Asks Slurm to start the job again; a controller that does not answer is asked again for a minute. The job
// that is waiting already is as good. The error has scontrol's own words.
Result<void> RequeueOnce(const RequeueRequest& request);

// For the last end of a job that was requeued by RequeueOnce in the grace time of a preemption: Slurm 24.05
// and newer still remember that time and would requeue the job at this end, too. `name` and `tools` as above;
// best effort, one try.
void ForbidRequeue(const std::string& name, const std::vector<std::string>& tools);

}  // namespace overcap
