// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "launch/runner.h"
#include "sys/clock.h"
#include "sys/inherited_children.h"
#include "sys/supervisor.h"

namespace overcap {

// All ranks on this machine, as children of this process.
class LocalRunner : public Runner {
 public:
  LocalRunner(const Clock& clock, Supervisor* supervisor)
      : clock_(clock), supervisor_(*supervisor), leave_alone_(InheritedChildren()) {}
  AttemptEnd Run(const Attempt& attempt, RankLogs* logs) override;
  bool Pause(int64_t us) override;
  int CancelSignal() override;

 private:
  const Clock& clock_;
  Supervisor& supervisor_;
  const std::function<bool(pid_t)> leave_alone_;
};

}  // namespace overcap
