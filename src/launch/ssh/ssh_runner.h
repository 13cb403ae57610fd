// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "launch/link/head_signals.h"
#include "launch/runner.h"
#include "sys/clock.h"

namespace overcap {

// What `ssh` gets unless a site says otherwise: never asks, says within 10 s that a host does not answer, and
// the cheaper key exchange first (docs/adr/0004-ssh-key-exchange.md).
std::vector<std::string> DefaultSshOptions();

// One ssh for each host, all at once, to an `overcap launch-node` that starts the ranks there. This machine
// is reached without ssh. A host without this version of the program gets a copy.
class SshRunner : public Runner {
 public:
  explicit SshRunner(const Clock& clock);  // takes INT, TERM and HUP of this process from now on

  AttemptEnd Run(const Attempt& attempt, RankLogs* logs) override;
  bool Pause(int64_t us) override { return !signals_ || signals_->Pause(us); }
  int CancelSignal() override { return signals_ ? signals_->First() : 0; }

 private:
  const Clock& clock_;
  Result<node_link::HeadSignals> signals_;
};

}  // namespace overcap
