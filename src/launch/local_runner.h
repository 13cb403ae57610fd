// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "launch/runner.h"
#include "sys/clock.h"
#include "sys/supervisor.h"

namespace overcap {

// All ranks on this machine, as children of this process.
class LocalRunner : public Runner {
 public:
  LocalRunner(const Clock& clock, Supervisor* supervisor) : clock_(clock), supervisor_(*supervisor) {}
  AttemptEnd Run(const Attempt& attempt, RankLogs* logs) override;
  bool Pause(int64_t us) override;
  int CancelSignal() override;

 private:
  const Clock& clock_;
  Supervisor& supervisor_;
};

}  // namespace overcap
