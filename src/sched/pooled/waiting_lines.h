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

// Scores are whole numbers, a thousand millionth of a point each: their order is the same however they are
// added up.
constexpr double kPoint = 1e9;
int64_t PointsOf(double score);

// Where a line stands: higher scores first, then who was submitted first.
struct Place {
  int64_t score = 0;  // with the fair share of the account
  int64_t own = 0;    // without it
  int64_t submit_s = 0;
  uint64_t seq = 0;
  uint32_t line = 0, kind = 0, limit = 0;     // those of the line, to be looked at without it
  bool operator<(const Place& other) const {  // goes before
    return score != other.score ? score > other.score : Earlier(other);
  }
  bool Earlier(const Place& other) const {
    if (submit_s != other.submit_s) return submit_s < other.submit_s;
    if (seq != other.seq) return seq < other.seq;
    return line < other.line;
  }
};

// A place in the order of a tier, as little of it as sorting needs: all are sorted anew whenever fair shares
// are looked at.
struct Rank {
  int64_t score = 0;
  uint32_t line = 0, kind = 0, limit = 0;
  int account = 0;
};

struct Line {
  int partition = 0, account = 0, demand = 0;
  uint32_t kind = 0;
  int64_t limit_s = 0;  // rounded
  double boost = 0;
  std::vector<JobRef> jobs;  // oldest first, from `head` on
  size_t head = 0;
  Place placed;  // where it stands in the order of its tier, if it does; the score: of when it was put there
  bool in_order = false, dirty = false;
  bool empty() const { return head == jobs.size(); }
  JobRef first() const { return jobs[head]; }
};

// Lines of one partition, demand and lab that the same budgets hold. In a round of a pass: if one of a kind
// is stuck so is every other of it whose limit is not shorter.
struct LineKind {
  int partition = 0, demand = 0, lab = 0;
  uint32_t checks = 0;     // position in PooledScheduler::checks_
  uint64_t unlike_in = 0;  // the round in which not all of them are alike: something is kept for one
};

// What the walk looks at first, apart from the rest: most of a long queue is passed by without another look.
struct Mark {
  uint32_t kind = 0, limit = 0;
};
struct Stuck {
  uint32_t round = 0, from_limit = 0;
};

// Partitions of one priority.
struct Tier {
  int priority = 0;
  uint64_t partitions = 0;
  std::vector<Rank> order;      // lines with jobs, sorted, but for those that are dirty
  std::vector<Mark> marks;      // of the same
  std::vector<uint32_t> dirty;  // lines whose first job is not what `order` says
};

}  // namespace overcap::pooled
