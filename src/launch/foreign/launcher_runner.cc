// SPDX-License-Identifier: Apache-2.0
#include "launch/foreign/launcher_runner.h"

#include "launch/foreign/launcher_run.h"

namespace overcap {

LauncherRunner::LauncherRunner(const Clock& clock, Random& random)
    : clock_(clock), random_(random), signals_(node_link::HeadSignals::Make()) {}

AttemptEnd LauncherRunner::Run(const Attempt& attempt, RankLogs* logs) {
  if (!signals_) return LauncherRun::CannotRun(signals_.error());
  return LauncherRun(attempt, logs, clock_, random_, &*signals_).Run();
}

}  // namespace overcap
