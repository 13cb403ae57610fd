// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/cluster_watch.h"
#include "agent/elastic/group_end.h"
#include "agent/elastic/node_command.h"
#include "agent/options.h"
#include "agent/rank_guard.h"
#include "agent/ranks.h"
#include "model/job_spec.h"
#include "sys/clock.h"
#include "sys/supervisor.h"

namespace overcap {

class LogKeeper;

// The nodes that are not this machine: one program (srun) starts their agents, and ends when they have.
struct OtherNodes {
  std::vector<std::string> argv;
  std::vector<std::string> unset;  // variables that it must not see
  std::string head;                // this node's name, as the others know it
  int count = 0;
  int64_t slack_us = 0;  // they have to get the code first, which may take them so long
};

// An elastic job in the place of ranks: one agent (`overcap launch`) for each node. On this machine all of
// them; in a cluster this node's, which leads, and a program that starts the others. Each agent's output is
// in the log of its number. An agent that is lost stops nobody; what the group makes of it, its agents say.
class NodeAgents : public Ranks, private GroupCompanion {
 public:
  // `spec` and `options` must outlive it; `watch` and `others` may be null.
  NodeAgents(const JobSpec& spec, const AgentOptions& options, const RankVariables& variables,
             const std::string& folder, const std::string& attempt_folder, int64_t grace_us,
             const OtherNodes* others, const Clock& clock, Supervisor* supervisor, ClusterWatch* watch);

  const RankGuard& Guard() const { return guard_; }
  size_t Size() const override { return agents_; }
  int MasterPort() const override { return 0; }
  const std::vector<std::string>& FirstEnvironment() const override { return shown_env_; }
  void NameTask(int, int) override {}  // it is no array
  Ending Run(const std::vector<std::string>& logs, GroupObserver* observer) override;
  // What beside the logs grows here, relative to the job's folder; folders end with '/'.
  std::vector<std::string> GrowingFiles() const;

 private:
  class Ends;
  void AddAgent(const RankVariables& variables, const std::string& folder, int node);
  void AddOthers(const OtherNodes& others, const RankVariables& variables, const std::string& folder);
  GroupMember MemberOf(std::vector<std::string> argv, std::vector<std::string> env,
                       const std::string& folder);
  std::optional<GroupEvent> LastWord() const;
  void TellToLeave();
  bool OthersSend(int64_t now_us) const;
  void KillLate(int64_t now_us);

  int64_t Prepare(std::vector<pollfd>* fds) override;
  bool Act(std::span<const pollfd> fds) override;
  int64_t GraceUs() const override { return 0; }

  const JobSpec& spec_;
  const AgentOptions& options_;
  const Clock& clock_;
  Supervisor& supervisor_;
  ClusterWatch* watch_;
  const NodeCommand command_;
  const JobSpec whole_;  // with what all nodes of this machine have together
  RankGuard guard_;
  GroupLimits limits_;
  LogKeeper* keeper_ = nullptr;  // of the logs, while it runs
  const int64_t grace_us_;
  size_t agents_ = 0;  // members that are agents of this machine; after them the one that starts others
  std::string key_;    // by which the agents of this attempt know each other
  std::vector<GroupMember> members_;
  std::vector<std::string> shown_env_;

  Ends* ends_ = nullptr;  // while it runs
  int64_t leave_until_us_, rest_until_us_, ended_us_;
  bool told_to_stop_ = false, forced_ = false;
  int64_t look_us_ = 0;                          // for agents that have told their end and do not end
  std::vector<std::optional<int64_t>> told_us_;  // since when
};

}  // namespace overcap
