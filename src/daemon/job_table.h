// SPDX-License-Identifier: Apache-2.0
// All jobs: the fold of the journal's events. No clock, no files: the same events give the same table.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "daemon/job.h"

namespace overcap {

// The size of what a user can make long in a spec: its strings, and a little for each.
int64_t SpecBytes(const JobSpec& spec);

class JobTable {
 public:
  // Changes the table as the event says; kCorrupt when it does not fit what came before (and nothing is
  // changed).
  Result<void> Apply(const Event& event);

  Job* Find(std::string_view id);
  const Job* Find(std::string_view id) const { return const_cast<JobTable*>(this)->Find(id); }
  Job* FindKey(uint64_t key);
  const Job* FindKey(uint64_t key) const { return const_cast<JobTable*>(this)->FindKey(key); }
  const std::map<uint64_t, std::unique_ptr<Job>>& jobs() const { return jobs_; }  // by order of submission
  int Count(JobState state) const { return counts_[static_cast<size_t>(state)]; }
  int ActiveCount() const;  // not ended
  // SpecBytes() of all jobs of one user: of those that have not ended, and of all.
  struct HeldBytes {
    int64_t open = 0, all = 0;
  };
  HeldBytes HeldBy(int64_t uid) const;

  // Whether a job with this id is among the last 10,000 that were removed, as far as the journal still has
  // them.
  bool WasRemoved(const std::string& id) const { return removed_.contains(id); }

  // Jobs whose start depends on `id` (--after, resubmit).
  std::vector<Job*> Dependents(std::string_view id);
  // Ids by suffix, whole id or "last".
  // `among`: suffixes and "last" are looked for among these alone, and no message names others.
  Result<std::string> Resolve(std::string_view ref, const std::function<bool(const Job&)>& among = {}) const;
  // The shortest list of events that gives this table.
  std::vector<Event> Compact() const;

 private:
  Result<void> Submitted(const Event& event);
  Result<void> Started(Job& job, const Event& event);
  Result<void> Preempted(Job& job, const Event& event);
  Result<void> SlotEnded(Job& job, const Event& event);
  void Ended(Job& job, const Event& event);
  Result<void> RestoreState(Job& job, const Event& event);
  void Remove(Job& job);
  void SetState(Job& job, JobState state);

  std::map<uint64_t, std::unique_ptr<Job>> jobs_;
  std::unordered_map<std::string_view, Job*> by_id_;
  std::unordered_multimap<std::string, uint64_t> dependents_;
  std::unordered_set<std::string> removed_;
  std::deque<std::string> removed_order_;
  std::array<int, 9> counts_{};
  std::unordered_map<int64_t, HeldBytes> held_;
  uint64_t next_key_ = 1;
};

}  // namespace overcap
