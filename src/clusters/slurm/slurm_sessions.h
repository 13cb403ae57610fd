// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "clusters/cluster_sessions.h"
#include "clusters/slurm/slurm_context.h"
#include "clusters/slurm/squeue_text.h"

namespace overcap {

// People inside Slurm's allocations, by `srun`: whatever they run is a step of the job and so under its
// limits.
class SlurmSessions : public ClusterSessions {
 public:
  explicit SlurmSessions(SlurmContext* context) : context_(context) {}

  Result<Replacement> PlanAttach(const JobRecord& record, const AttachRequest& request) override;
  Result<Replacement> PlanSession(const JobSpec& spec, bool terminal) override;
  Result<SessionState> LookAtSession(const std::string& id) override;
  Result<std::vector<std::string>> NodesOf(const JobRecord& record) override;
  std::string VariablesOfANode() const override;
  bool IsChatter(std::string_view line) const override;
  std::optional<Error> FailureIn(std::string_view line) const override;
  std::vector<std::string> Contact() const override;

 private:
  // Rows of this job that run now, as the mirror has them.
  Result<std::vector<SqueueJob>> RunningRows(int64_t slurm_id, int64_t max_age_us);
  Result<int64_t> SlurmIdOf(const JobRecord& record) const;  // an array's own for an array
  Result<std::vector<std::string>> NodesNow(int64_t slurm_id);
  Result<std::string> CheckNode(const JobRecord& record, int64_t slurm_id, const std::string& node);
  Result<Replacement> Become(std::vector<std::string> argv) const;

  SlurmContext* context_;
};

}  // namespace overcap
