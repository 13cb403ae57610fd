// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "clusters/cluster.h"
#include "clusters/slurm/sbatch_script.h"
#include "clusters/slurm/slurm_context.h"

namespace overcap {

class JobSender;
class SlurmJobs;
class SlurmPolicy;
class SlurmSessions;
class SlurmView;

// A cluster that Slurm drives, by Slurm's own programs; jobs are folders that all nodes see
// (docs/formats/slurm-job.md). Asks nobody before it is needed; not thread safe.
class SlurmCluster : public Cluster {
 public:
  explicit SlurmCluster(ClusterSettings settings);
  // For tests.
  explicit SlurmCluster(std::unique_ptr<SlurmContext> context);
  ~SlurmCluster() override;

  const std::string& Name() const override { return context_->settings().name; }
  Capabilities GetCapabilities() const override;
  Result<SubmitPlan> Plan(const JobSpec& spec) override;
  void Expect(const SubmitPlan& plan) override;
  Result<JobRecord> Submit(const SubmitPlan& plan) override;
  Result<std::vector<JobRecord>> Query(const std::vector<std::string>& ids) override;
  Result<std::vector<JobRecord>> QueryRecent(const std::vector<std::string>& ids,
                                             int64_t max_age_us) override;
  Result<std::vector<JobRecord>> List(const JobFilter& filter) override;
  Result<void> ForEach(const JobFilter& filter, const std::function<void(const JobRecord&)>& take) override;
  Result<std::vector<std::string>> Resolve(const std::vector<std::string>& refs) override;
  Result<void> Cancel(const std::vector<std::string>& ids, const std::string& reason) override;
  Result<void> Hold(const std::vector<std::string>& ids) override;
  Result<void> Release(const std::vector<std::string>& ids) override;
  Result<void> Remove(const std::vector<std::string>& ids) override;
  Result<bool> Wait(const std::vector<std::string>& ids, WaitUntil until, int64_t timeout_seconds) override;
  Result<std::vector<NodeInfo>> Nodes() override;
  ClusterView* View() override;
  ClusterSessions* Sessions() override;
  ClusterPolicy* Policies() override;

 private:
  // What a job waits for.
  struct Ahead {
    std::vector<SlurmDependency> after;
    std::string never;  // why it will never start; "": it may
  };

  static std::vector<std::string> IdsAhead(const JobSpec& spec);
  // `records`: of IdsAhead().
  Result<Ahead> FindAhead(const JobSpec& spec, const std::vector<JobRecord>& records);
  Result<JobRecord> AfterSubmit(const JobSpec& spec);
  Result<JobRecord> NeverStarted(const JobSpec& spec, const std::string& why);
  Result<void> CheckOwn(const std::vector<std::string>& ids, std::string_view verb) const;
  void TellStore(const JobRecord& record);
  Result<std::string> Number(const JobRecord& record);
  Result<void> Act(std::vector<std::string> command, const std::vector<std::string>& numbers, bool comma);
  Result<void> NoteHold(const std::vector<JobRecord>& records, bool held);

  std::unique_ptr<SlurmContext> context_;
  std::unique_ptr<SlurmJobs> jobs_;
  std::unique_ptr<JobSender> sender_;
  std::unique_ptr<SlurmView> view_;
  std::unique_ptr<SlurmSessions> sessions_;
  std::unique_ptr<SlurmPolicy> policy_;
};

}  // namespace overcap
