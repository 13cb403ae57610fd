// SPDX-License-Identifier: Apache-2.0
#include "launch/ssh/ssh_runner.h"

#include "base/text.h"
#include "launch/link/head.h"
#include "launch/ssh/ssh_transport.h"

namespace overcap {

std::vector<std::string> DefaultSshOptions() {
  return {"-T",
          "-o",
          "BatchMode=yes",
          "-o",
          "ConnectTimeout=8",
          "-o",
          "ServerAliveInterval=5",
          "-o",
          "ServerAliveCountMax=3",
          "-o",
          "ClearAllForwardings=yes",
          "-o",
          "ForwardAgent=no",
          "-o",
          "ForwardX11=no",
          "-o",
          kQuickKeyExchange};
}

SshRunner::SshRunner(const Clock& clock) : clock_(clock), signals_(node_link::HeadSignals::Make()) {}

AttemptEnd SshRunner::Run(const Attempt& attempt, RankLogs* logs) {
  if (!signals_) {
    AttemptEnd end;
    end.cause = AttemptEnd::Cause::kCannotRun;
    end.message = signals_.error().message;
    end.code = signals_.error().code;
    return end;
  }
  SshTransport transport(attempt);
  return node_link::Head(attempt, logs, clock_, &*signals_, &transport).Run();
}

}  // namespace overcap
