// SPDX-License-Identifier: Apache-2.0
// The queue of a pooled cluster. Jobs of one partition, account, demand, boost and (rounded) time limit stand
// in one line, oldest first: if the first of a line cannot start none of it can, and the order of jobs is the
// order of lines by their first ones. So a pass costs by the number of different lines, not of jobs.
#pragma once

#include <cstdint>
#include <vector>

#include "sched/pooled/budget.h"
#include "sched/pooled/fair_share.h"
#include "sched/pooled/pool_job.h"

namespace overcap::pooled {

// A time limit, rounded up to one of 16 steps for each power of two: lines would be as many as jobs without
// it.
int64_t RoundedLimit(int64_t limit_s);

struct Line {
  int partition = 0, account = 0, demand = 0;
  int64_t limit_s = 0;  // rounded
  double size_score = 0;
  std::vector<JobRef> jobs;  // oldest first, from `head` on
  size_t head = 0;
  bool empty() const { return head == jobs.size(); }
  JobRef first() const { return jobs[head]; }
};

// A place in the order of a tier: higher scores first, then who was submitted first.
struct Place {
  double score = 0;
  int64_t submit_s = 0;
  uint64_t seq = 0;
  uint32_t line = 0;
  int partition = 0, account = 0, demand = 0;  // those of the line, to be looked at without it
  bool operator<(const Place& other) const {   // goes before
    if (score != other.score) return score > other.score;
    if (submit_s != other.submit_s) return submit_s < other.submit_s;
    if (seq != other.seq) return seq < other.seq;
    return line < other.line;
  }
};

// Partitions of one priority.
struct Tier {
  int priority = 0;
  uint64_t partitions = 0;
  std::vector<Place> order;     // lines with jobs, sorted, but for those that are dirty
  std::vector<uint32_t> dirty;  // lines whose first job is not what `order` says
};

}  // namespace overcap::pooled
