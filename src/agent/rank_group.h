// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/cluster_watch.h"
#include "agent/options.h"
#include "agent/rank_guard.h"
#include "agent/ranks.h"
#include "base/result.h"
#include "launch/rank_threads.h"
#include "model/job_spec.h"
#include "model/job_state.h"
#include "sys/supervisor.h"

namespace overcap {

// Ranks on this machine, as children of the agent.
class RankGroup : public Ranks {
 public:
  // `folder` is where the ranks start; `watch`, or null, is asked while they run. `spec` and `options`
  // must outlive it.
  RankGroup(const JobSpec& spec, const AgentOptions& options, const RankVariables& variables,
            const std::string& folder, const Clock& clock, Supervisor* supervisor, ClusterWatch* watch);

  size_t Size() const override { return members_.size(); }
  int MasterPort() const override { return master_port_; }
  const std::vector<std::string>& FirstEnvironment() const override { return members_[0].request.env; }
  const RankGuard& Guard() const { return guard_; }

  void NameTask(int task, int attempt) override;  // ranks that meet get a new port each time
  Ending Run(const std::vector<std::string>& logs, GroupObserver* observer) override;

 private:
  RankCpus Cpus(const std::vector<std::string>& cluster) const;
  Result<std::vector<Fd>> OpenLogs(const std::vector<std::string>& logs);

  const JobSpec& spec_;
  const AgentOptions& options_;
  const Clock& clock_;
  Supervisor& supervisor_;
  ClusterWatch* watch_;
  RankGuard guard_;
  GroupLimits limits_;
  int master_port_;
  std::vector<GroupMember> members_;
};

}  // namespace overcap
