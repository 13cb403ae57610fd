// SPDX-License-Identifier: Apache-2.0
// Hands a job to Slurm so that it runs once, whatever breaks on the way (docs/formats/slurm-job.md).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "clusters/slurm/job_folder.h"
#include "clusters/slurm/sbatch_script.h"
#include "clusters/slurm/slurm_context.h"
#include "clusters/slurm/slurm_queue.h"
#include "clusters/slurm/submit_reply.h"

namespace overcap {

class JobSender {
 public:
  JobSender(SlurmContext* context, SlurmQueue* queue) : context_(context), queue_(queue) {}

  // Begins the sbatch that Send() will need when a plan with this command comes: it reads its configuration
  // meanwhile and waits for the script. Nothing is sent. No error: then Send() begins it, and says what is
  // wrong.
  void Expect(std::vector<std::string> argv);

  // Idempotent. kConflict: another job has this id. kUnavailable: nobody knows whether Slurm has it; the same
  // may be sent again. Any other error: there is no such job, and nothing is left of it.
  // `made`: of SlurmJobFolder::Make().
  Result<SlurmHandle> Send(const JobSpec& spec, bool made, const SbatchPlan& plan, const ToolContext& named);

 private:
  Result<SlurmHandle> SendNew(const JobSpec& spec, const SbatchPlan& plan, const ToolContext& named,
                              SlurmJobFolder* folder);
  Result<SlurmHandle> AfterFailure(const JobSpec& spec, const ToolFailure& failure, SlurmJobFolder* folder);
  Result<std::optional<SlurmHandle>> Find(const JobSpec& spec, SlurmJobFolder* folder);
  Result<std::optional<int64_t>> FindInAccounts(const JobSpec& spec);
  Result<SlurmHandle> Keep(int64_t slurm_id, const JobSpec& spec, SlurmJobFolder* folder);
  int64_t AgreeInStore(int64_t slurm_id, const JobSpec& spec) const;
  void Discard(SlurmJobFolder* folder);
  std::vector<std::string> Environment() const;
  Result<std::unique_ptr<ToolRun>> Start(const std::vector<std::string>& argv) const;

  SlurmContext* context_;
  SlurmQueue* queue_;
  std::vector<std::string> expected_;  // the command of expected_run_
  int64_t expected_us_ = 0;            // monotonic: when that began
  std::unique_ptr<ToolRun> expected_run_;
};

}  // namespace overcap
