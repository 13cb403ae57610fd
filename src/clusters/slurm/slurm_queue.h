// SPDX-License-Identifier: Apache-2.0
// The queue as this user sees it: rows of the mirror, found by our ids and by Slurm's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "clusters/slurm/job_verdict.h"
#include "clusters/slurm/slurm_context.h"
#include "clusters/slurm/squeue_text.h"

namespace overcap {

class SlurmQueue {
 public:
  explicit SlurmQueue(SlurmContext* context);

  // Not older than `max_age_us` or the mirror's shortest interval. Where the controller cannot be asked, what
  // was known last stays, and stale() says so. An error: nothing is known at all. Rows that were given before
  // are gone.
  Result<void> Refresh(int64_t max_age_us);

  bool known() const { return text_ != nullptr; }
  int64_t taken_us() const { return taken_us_; }
  const std::string& stale() const { return stale_; }
  const std::string& user() const;  // who this process is

  const std::vector<SqueueRow>& rows() const { return rows_; }   // of this user
  std::vector<SqueueRow> RowsOf(const std::string& user) const;  // of another one

  // What the queue says of a job of this user: rows under its Slurm id or, when that is not known (0), with
  // its comment.
  SlurmSight SightOf(std::string_view id, int64_t slurm_id);
  // Rows of this user under a number of Slurm's: a job's, or all tasks of an array's.
  std::vector<const SqueueJob*> RowsOfNumber(int64_t slurm_id);

  // Asks the controller itself, for what only it can tell now: after an act of this user, never to watch.
  // All jobs of this user, or one of them.
  Result<std::vector<SqueueJob>> Look() const;
  Result<std::vector<SqueueJob>> LookAt(int64_t slurm_id) const;

 private:
  Result<std::vector<SqueueJob>> Ask(const std::string& option) const;
  const SqueueJob* Parsed(size_t row);
  void Index();

  SlurmContext* context_;
  mutable std::string user_;                 // looked up when it is asked for: that can take a while
  std::shared_ptr<const std::string> text_;  // what rows_ are views of
  std::string mark_;
  int64_t taken_us_ = 0;
  std::string stale_;
  std::vector<SqueueRow> rows_;
  std::unordered_map<size_t, SqueueJob> parsed_;  // by place in rows_
  bool indexed_ = false;
  std::unordered_multimap<std::string_view, size_t> by_id_;
  std::unordered_multimap<int64_t, size_t> by_number_;
};

}  // namespace overcap
