// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <sys/types.h>

#include "sys/supervisor.h"

namespace overcap {

// What looks after a job for its cluster while the ranks run.
class ClusterWatch : public GroupCompanion {
 public:
  virtual void OnSignal(int signal) = 0;          // of the agent; for those who do not ask a supervisor
  virtual bool IsOwnHelper(pid_t pid) const = 0;  // a process of its own, none of the ranks'
  // NAME=VALUE that all of the job's processes on this node have in their environment, those of its steps
  // too;
  // "": there is none.
  virtual std::string JobMark() const { return {}; }
};

}  // namespace overcap
