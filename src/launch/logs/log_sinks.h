// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "launch/logs/rank_logs.h"
#include "sys/clock.h"
#include "sys/supervisor.h"

namespace overcap {

// Leads the output of members of a group into their logs: stdout into the file itself where RankLogs lets
// them write it, all else through a pipe.
class LogSinks {
 public:
  LogSinks(RankLogs* logs, const Clock& clock, std::vector<GroupMember>* members);

 private:
  class Sink;
  std::vector<std::shared_ptr<OutputSink>> sinks_;  // the members borrow them
};

}  // namespace overcap
