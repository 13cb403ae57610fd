// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/options.h"
#include "agent/rank_guard.h"
#include "base/result.h"
#include "model/job_spec.h"
#include "model/job_state.h"
#include "sys/supervisor.h"

namespace overcap {

// Under Overcap's own variables of a rank.
struct RankVariables {
  std::string_view submitter;               // NUL-separated NAME=VALUE
  const std::vector<std::string>& cluster;  // over these; see RankSetting
};

// The ranks of an attempt, made ready once and run once, or once for each task of an array.
class RankGroup {
 public:
  // `folder` is where the ranks start; `companion`, or null, is asked while they run. `spec` and `options`
  // must outlive it.
  RankGroup(const JobSpec& spec, const AgentOptions& options, const RankVariables& variables,
            const std::string& folder, Supervisor* supervisor, GroupCompanion* companion);

  size_t Size() const { return members_.size(); }
  int MasterPort() const { return master_port_; }
  const std::vector<std::string>& FirstEnvironment() const { return members_[0].request.env; }
  const RankGuard& Guard() const { return guard_; }

  void NameTask(int task, int attempt);  // arrays, before each Run; ranks that meet get a new port each time
  // Runs all ranks to their end, with their output in these new files, one each.
  Ending Run(const std::vector<std::string>& logs, GroupObserver* observer);

 private:
  Result<std::vector<Fd>> OpenLogs(const std::vector<std::string>& logs);

  const JobSpec& spec_;
  const AgentOptions& options_;
  Supervisor& supervisor_;
  GroupCompanion* companion_;
  RankGuard guard_;
  GroupLimits limits_;
  int master_port_;
  std::vector<GroupMember> members_;
};

}  // namespace overcap
