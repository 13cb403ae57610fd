// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "clusters/cluster.h"
#include "model/job_store.h"
#include "stores/store.h"

namespace overcap {

// The jobs of one store, to be read only: whatever cluster they are on, and also when nobody can ask that.
class StoredJobs : public Cluster {
 public:
  // `folder` is where what was read is kept.
  StoredJobs(JobStore at, std::shared_ptr<Store> store, std::string folder)
      : at_(std::move(at)), store_(std::move(store)), folder_(std::move(folder)) {}

  const std::string& Name() const override { return at_.at; }
  Capabilities GetCapabilities() const override { return {}; }
  Result<SubmitPlan> Plan(const JobSpec& spec) override;
  Result<JobRecord> Submit(const SubmitPlan& plan) override;
  Result<std::vector<JobRecord>> Query(const std::vector<std::string>& ids) override;
  Result<std::vector<JobRecord>> List(const JobFilter& filter) override;
  // Ids, ends of ids and "last".
  Result<std::vector<std::string>> Resolve(const std::vector<std::string>& refs) override;
  Result<void> Cancel(const std::vector<std::string>& ids, const std::string& reason) override;
  Result<void> Hold(const std::vector<std::string>& ids) override;
  Result<void> Release(const std::vector<std::string>& ids) override;
  Result<void> Remove(const std::vector<std::string>& ids) override;
  Result<bool> Wait(const std::vector<std::string>& ids, WaitUntil until, int64_t timeout_seconds) override;
  Result<std::vector<NodeInfo>> Nodes() override;

 private:
  Result<JobRecord> QueryOne(const std::string& id);
  Result<std::vector<std::string>> Ids();

  JobStore at_;
  std::shared_ptr<Store> store_;
  std::string folder_;
};

// What a job's reports in its folder say, without a cluster that could be asked.
JobRecord RecordFromReports(JobSpec spec, const std::string& folder);

// The jobs that `text`, a location or a name of `stores:`, has. `root` is where this user's things stand.
struct StoreBook;
Result<std::unique_ptr<Cluster>> OpenStoredJobs(const StoreBook& book, const std::string& text,
                                                const std::string& root);

}  // namespace overcap
