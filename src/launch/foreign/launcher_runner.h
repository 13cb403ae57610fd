// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "launch/link/head_signals.h"
#include "launch/runner.h"
#include "sys/clock.h"
#include "sys/random.h"

namespace overcap {

// Through srun or an mpiexec, which starts `overcap rank` on the hosts (docs/formats/node-link.md). The
// ranks' variables OVERCAP_LAUNCH and OVERCAP_LAUNCH_KEY must reach them: name them to launchers that do not
// pass all.
class LauncherRunner : public Runner {
 public:
  LauncherRunner(const Clock& clock, Random& random);  // takes INT, TERM and HUP of this process from now on

  AttemptEnd Run(const Attempt& attempt, RankLogs* logs) override;
  bool Pause(int64_t us) override { return !signals_ || signals_->Pause(us); }
  int CancelSignal() override { return signals_ ? signals_->First() : 0; }

 private:
  const Clock& clock_;
  Random& random_;
  Result<node_link::HeadSignals> signals_;
};

}  // namespace overcap
