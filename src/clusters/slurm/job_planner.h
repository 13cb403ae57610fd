// SPDX-License-Identifier: Apache-2.0
// From a spec to what sbatch is told, with what is known of the cluster without asking it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "clusters/slurm/sbatch_script.h"
#include "clusters/slurm/sinfo_text.h"
#include "clusters/slurm/slurm_context.h"
#include "clusters/slurm/submit_reply.h"

namespace overcap {

class JobPlanner {
 public:
  explicit JobPlanner(SlurmContext* context) : context_(context) {}

  // `after`: those of spec.after and spec.replaces that have not ended.
  Result<SbatchPlan> Plan(const JobSpec& spec, std::vector<SlurmDependency> after);
  // The command that such a plan will have, as far as the placement says it.
  std::vector<std::string> Command(const std::string& id, const Placement& placement);
  // What a plan looks like to people: the command line and the script.
  std::string Text(const JobSpec& spec, const SbatchPlan& plan) const;
  // What was asked for, to name it in messages. Not to be kept longer than this planner.
  ToolContext Named(const JobSpec& spec) const;

  // The configuration's settings with what the spec says over them, and the account and QOS that go with its
  // partitions (submit_place.h). What is known of those is ten minutes old at most.
  SbatchSettings Settings(const JobSpec& spec);
  // The nodes as they were known last; the cluster is asked only when they never were. Empty: not known.
  std::vector<SlurmNode> KnownNodes();

 private:
  void ChoosePlaceFor(const std::string& user, SbatchSettings* settings);
  std::string AccountsOfUser() const;
  std::string PartitionNames() const;
  Result<void> CheckLimits(const JobSpec& spec) const;
  Result<void> CheckFits(const JobSpec& spec);
  Result<std::vector<SlurmNode>> ReadNodes(int64_t max_age_us);

  SlurmContext* context_;
};

// USR1 so long before the time limit: as asked, or what a job needs that wants to be started again then.
int WarnSeconds(const JobSpec& spec);

}  // namespace overcap
