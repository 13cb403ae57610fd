// SPDX-License-Identifier: Apache-2.0
// The jobs of this user on one Slurm cluster: their folders and what Slurm says, brought together.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "clusters/cluster.h"
#include "clusters/slurm/job_folder.h"
#include "clusters/slurm/job_index.h"
#include "clusters/slurm/job_verdict.h"
#include "clusters/slurm/slurm_context.h"
#include "clusters/slurm/slurm_queue.h"

namespace overcap {

// A job that Overcap did not submit is called by Slurm's number: "123", "123_4" for a task.
bool IsSlurmNumber(std::string_view id);

class SlurmJobs {
 public:
  explicit SlurmJobs(SlurmContext* context);

  SlurmQueue& queue() { return queue_; }
  const JobIndex& index() const { return index_; }
  SlurmJobFolder Folder(const std::string& id) const { return SlurmJobFolder(context_->JobFolder(id)); }

  // As Cluster::Query(). The queue is read, not older than `max_age_us`, only for jobs whose folders do not
  // say how they ended.
  // `missing`: where it is given, unknown ones are put there and have an empty record.
  Result<std::vector<JobRecord>> Query(const std::vector<std::string>& ids, int64_t max_age_us,
                                       std::vector<std::string>* missing = nullptr);
  // The record of one job as its folder tells it; asks nobody. kNotFound as Query().
  Result<JobRecord> Glance(const std::string& id);
  // The same with what the controller says at this moment: after an act of this user, never to watch.
  Result<JobRecord> LookAt(const std::string& id);

  Result<std::vector<JobRecord>> List(const JobFilter& filter);
  Result<void> ForEach(const JobFilter& filter, const std::function<void(const JobRecord&)>& take);
  Result<std::vector<std::string>> Resolve(const std::vector<std::string>& refs);

  // kDenied for a job whose folder another user has made.
  Result<void> CheckOwn(const std::string& id, std::string_view verb) const;

  // Notes that a job has ended: nothing more can happen to it.
  JobRecord Settle(JobRecord record);

 private:
  struct Open;      // a job that its folder does not know to have ended
  struct ListWork;  // slurm_job_list.cc

  tl::unexpected<Error> NoSuchJob(const std::string& id) const;
  // Of a job whose folder another user has made: what that says, and nothing that could be opened.
  JobRecord StrangersRecord(const SlurmJobFolder& folder, const JobSpec& spec) const;
  // Empty: it has ended, and `record` says how.
  Result<std::optional<JobEvidence>> Load(const std::string& id, JobRecord* record);
  void Judge(std::vector<Open>* open);
  void AskAccounts(std::vector<Open*>* doubtful);
  Result<std::vector<SacctJob>> Accounts(const std::vector<int64_t>& numbers, bool* none_kept);
  Result<JobRecord> Foreign(const std::string& id);
  Result<JobRecord> LookAtForeign(const std::string& id);
  std::optional<JobRecord> ArrayRow(const std::string& id, const std::vector<const SqueueRow*>& rows);
  std::vector<JobRecord> ReadRecords(const ListWork& work, const JobFilter& filter);
  void SortRows(const JobFilter& filter, ListWork* work);
  Result<std::string> ResolveOne(const std::string& ref, const std::vector<std::string>& all);
  void MoveLatestNumberLast(std::vector<std::pair<std::string, JobSpec>>* known) const;
  Result<std::string> ResolveNumber(const std::string& ref);
  void JudgeList(const std::vector<std::string>& ids, std::vector<JobRecord>* records);
  std::vector<std::string> AllIds() const;

  SlurmContext* context_;
  SlurmQueue queue_;
  JobIndex index_;
};

}  // namespace overcap
