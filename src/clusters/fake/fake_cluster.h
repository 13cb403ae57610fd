// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <map>
#include <optional>

#include "clusters/cluster.h"
#include "sys/clock.h"

namespace overcap {

// A cluster in memory: one machine, first come first served, jobs end as their words say (fake_program.h).
// Time is its own and moves only by clock().Advance() and inside Wait(), which jumps from one ending to the
// next.
class FakeCluster : public Cluster {
 public:
  FakeCluster(std::string name, Machine machine) : name_(std::move(name)), machine_(std::move(machine)) {}

  FakeClock& clock() { return clock_; }
  // The next call of Submit() does its work when `done`, and reports this error in any case.
  void FailNextSubmit(Error error, bool done) { next_failure_ = Failure{std::move(error), done}; }
  // What records say about where the job's folder is; a test may put logs there.
  void SetJobFolder(const std::string& id, std::string dir, std::vector<LogFile> logs);

  const std::string& Name() const override { return name_; }
  Capabilities GetCapabilities() const override;
  Result<SubmitPlan> Plan(const JobSpec& spec) override;
  Result<JobRecord> Submit(const SubmitPlan& plan) override;
  Result<std::vector<JobRecord>> Query(const std::vector<std::string>& ids) override;
  Result<std::vector<JobRecord>> List(const JobFilter& filter) override;
  Result<std::vector<std::string>> Resolve(const std::vector<std::string>& refs) override;
  Result<void> Cancel(const std::vector<std::string>& ids, const std::string& reason) override;
  Result<void> Hold(const std::vector<std::string>& ids) override;
  Result<void> Release(const std::vector<std::string>& ids) override;
  Result<void> Remove(const std::vector<std::string>& ids) override;
  Result<bool> Wait(const std::vector<std::string>& ids, WaitUntil until, int64_t timeout_seconds) override;
  Result<std::vector<NodeInfo>> Nodes() override;

 private:
  struct Failure {
    Error error;
    bool done = false;
  };

  Result<JobRecord> Accept(const JobSpec& spec);
  Result<std::vector<JobRecord*>> Find(const std::vector<std::string>& ids);
  JobRecord* FindOne(const std::string& id);
  void Settle();  // ends and starts what is due by now
  bool EndDue();
  bool StartDue();
  bool MayStart(JobRecord* job);
  void Start(JobRecord* job);
  void End(JobRecord* job, JobState state, int exit_status, const std::string& reason);
  int64_t EndTime(const JobRecord& job) const;
  std::optional<int64_t> NextEnding() const;
  int FreeGpus() const;

  std::string name_;
  Machine machine_;
  FakeClock clock_;
  std::deque<JobRecord> jobs_;  // in the order of submission
  std::optional<Failure> next_failure_;
};

}  // namespace overcap
