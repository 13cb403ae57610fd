// SPDX-License-Identifier: Apache-2.0
// Lines of jobs that wait, and the order in which a pass looks at them.
#include <algorithm>
#include <cmath>

#include "sched/pooled/place_order.h"
#include "sched/pooled/pooled_scheduler.h"

namespace overcap::pooled {
namespace {

constexpr size_t kFewLines = 16;  // so many are moved one by one, more together

uint32_t ShortLimit(int64_t limit_s) {
  return static_cast<uint32_t>(std::min<int64_t>(limit_s, ~uint32_t{0}));
}

Rank RankOf(const Place& place, int account) {
  return {place.score, place.line, place.kind, place.limit, account};
}

}  // namespace

int64_t RoundedLimit(int64_t limit_s) {
  if (limit_s >= kForever) return kForever;
  int64_t step = 1;
  while (limit_s / step >= 32) step *= 2;
  return (limit_s + step - 1) / step * step;
}

int64_t PointsOf(double score) {
  constexpr double kMost = 2e9;
  return std::llround(std::clamp(score, -kMost, kMost) * kPoint);
}

bool PooledScheduler::Older(JobRef a, JobRef b) const {
  const PoolJob &left = jobs_[a].told, &right = jobs_[b].told;
  return std::tie(left.submit_s, left.seq, a) < std::tie(right.submit_s, right.seq, b);
}

// Accounts of one lab that the same budgets hold in a partition are of one kind there: all that only the
// lab's own hold. The newest account's.
uint32_t PooledScheduler::CheckKindOf(int lab, int partition) {
  const auto at = static_cast<uint32_t>(checks_.size() - 1);
  for (const Check& check : checks_.back()) {
    if (budgets_[check.budget].lab < 0) return at;
  }
  uint32_t& shared =
      lab_check_kinds_[static_cast<size_t>(lab) * rules_.partitions.size() + static_cast<size_t>(partition)];
  if (shared == ~uint32_t{0}) shared = at;
  return shared;
}

uint32_t PooledScheduler::KindOf(int partition, const Job& job) {
  const size_t account = static_cast<size_t>(job.told.account);
  const uint32_t checks = check_kinds_[account * rules_.partitions.size() + static_cast<size_t>(partition)];
  const auto hash_of = [](uint32_t of_checks, int demand) {
    return MixedHash(MixedHash(0, of_checks), static_cast<uint64_t>(demand));
  };
  const uint64_t hash = hash_of(checks, job.demand);
  uint32_t found = kind_index_.Find(
      hash, [&](uint32_t at) { return kinds_[at].checks == checks && kinds_[at].demand == job.demand; });
  if (found != FlatIndex::kNone) return found;
  found = static_cast<uint32_t>(kinds_.size());
  kind_index_.Add(hash, found, [&](uint32_t at) { return hash_of(kinds_[at].checks, kinds_[at].demand); });
  kinds_.push_back({partition, job.demand, job.lab, checks, 0});
  stuck_.push_back({});
  return found;
}

uint32_t PooledScheduler::LineOf(int partition, const Job& job) {
  const int64_t limit_s = RoundedLimit(LimitIn(PartitionAt(partition), job.told.limit_s));
  const auto hash_of = [](int in, int account, int demand, int64_t limit, double boost) {
    uint64_t hash = MixedHash(static_cast<uint64_t>(in), static_cast<uint64_t>(account));
    hash = MixedHash(MixedHash(hash, static_cast<uint64_t>(demand)), static_cast<uint64_t>(limit));
    return MixedHash(hash, static_cast<uint64_t>(PointsOf(boost)));
  };
  const uint64_t hash = hash_of(partition, job.told.account, job.demand, limit_s, job.told.boost);
  uint32_t found = line_index_.Find(hash, [&](uint32_t at) {
    const Line& line = lines_[at];
    return line.partition == partition && line.account == job.told.account && line.demand == job.demand &&
           line.limit_s == limit_s && line.boost == job.told.boost;
  });
  if (found != FlatIndex::kNone) return found;
  found = static_cast<uint32_t>(lines_.size());
  line_index_.Add(hash, found, [&](uint32_t at) {
    const Line& line = lines_[at];
    return hash_of(line.partition, line.account, line.demand, line.limit_s, line.boost);
  });
  Line line;
  line.partition = partition, line.account = job.told.account, line.demand = job.demand;
  line.kind = KindOf(partition, job);
  line.limit_s = limit_s;
  line.boost = job.told.boost;
  lines_.push_back(std::move(line));
  return found;
}

void PooledScheduler::MarkDirty(uint32_t line) {
  if (lines_[line].dirty) return;
  lines_[line].dirty = true;
  tiers_[tier_of_[static_cast<size_t>(lines_[line].partition)]].dirty.push_back(line);
}

void PooledScheduler::PutInLines(JobRef ref) {
  Job& job = jobs_[ref];
  job.state = State::kQueued;
  ++queued_;
  for (uint64_t left = job.told.partitions; left != 0; left &= left - 1) {
    const uint32_t at = LineOf(__builtin_ctzll(left), job);
    std::vector<JobRef>& jobs = lines_[at].jobs;
    size_t& head = lines_[at].head;
    const auto begin = jobs.begin() + static_cast<std::ptrdiff_t>(head);
    auto place =
        jobs.empty() || Older(jobs.back(), ref)
            ? jobs.end()
            : std::lower_bound(begin, jobs.end(), ref, [this](JobRef a, JobRef b) { return Older(a, b); });
    if (place == begin) MarkDirty(at);
    if (head > 0 && place - begin < jobs.end() - place) {
      std::move(begin, place, begin - 1);
      *(place - 1) = ref;
      --head;
    } else {
      jobs.insert(place, ref);
    }
  }
}

void PooledScheduler::TakeOutOfLines(JobRef ref) {
  const Job& job = jobs_[ref];
  --queued_;
  for (uint64_t left = job.told.partitions; left != 0; left &= left - 1) {
    const uint32_t at = LineOf(__builtin_ctzll(left), job);
    std::vector<JobRef>& jobs = lines_[at].jobs;
    size_t& head = lines_[at].head;
    const auto begin = jobs.begin() + static_cast<std::ptrdiff_t>(head);
    const auto place =
        std::lower_bound(begin, jobs.end(), ref, [this](JobRef a, JobRef b) { return Older(a, b); });
    if (place == begin) MarkDirty(at);
    if (place - begin < jobs.end() - place) {
      std::move_backward(begin, place, place + 1);
      ++head;
    } else {
      jobs.erase(place);
    }
    if (head > 64 && head > jobs.size() / 2) {
      jobs.erase(jobs.begin(), jobs.begin() + static_cast<std::ptrdiff_t>(head));
      head = 0;
    }
  }
}

// ---- the order

// Of the score, what does not depend on what the account has used.
int64_t PooledScheduler::OwnPoints(const PoolJob& told) const {
  const double size =
      rules_.weights.size * told.need.all_gpus() / static_cast<double>(std::max<int64_t>(1, pool_gpus_));
  const double age = static_cast<double>(told.submit_s) / static_cast<double>(rules_.weights.age_unit_s);
  return PointsOf(size + told.boost - rules_.weights.age * age);
}

Place PooledScheduler::PlaceOf(uint32_t at) const {
  const Line& line = lines_[at];
  const PoolJob& first = jobs_[line.first()].told;
  const int64_t own = OwnPoints(first);
  return {share_points_[static_cast<size_t>(line.account)] + own,
          own,
          first.submit_s,
          first.seq,
          at,
          line.kind,
          ShortLimit(line.limit_s)};
}

double PooledScheduler::ScoreOf(JobRef ref) const {
  const PoolJob& told = jobs_[ref].told;
  return static_cast<double>(share_points_[static_cast<size_t>(told.account)] + OwnPoints(told)) / kPoint;
}

// Whether the line that has this rank goes before who stands there.
bool PooledScheduler::Before(const Rank& rank, const Place& place) const {
  return rank.score != place.score ? rank.score > place.score : lines_[rank.line].placed.Earlier(place);
}

// Takes a line out of the order, puts it in, or moves it, and everything between.
void PooledScheduler::MoveInOrder(Tier* tier, uint32_t at) {
  Line& line = lines_[at];
  std::vector<Rank>& order = tier->order;
  std::vector<Mark>& marks = tier->marks;
  const auto place_of = [&](const Place& place) {
    return std::lower_bound(order.begin(), order.end(), place,
                            [this](const Rank& rank, const Place& one) { return Before(rank, one); }) -
           order.begin();
  };
  const bool was_in = line.in_order;
  line.placed.score = share_points_[static_cast<size_t>(line.account)] + line.placed.own;
  const auto old = was_in ? place_of(line.placed) : 0;
  line.dirty = false;
  line.in_order = !line.empty();
  if (!line.in_order) {
    if (was_in) order.erase(order.begin() + old), marks.erase(marks.begin() + old);
    return;
  }
  const Place placed = PlaceOf(at);
  const Rank rank = RankOf(placed, line.account);
  const Mark mark{placed.kind, placed.limit};
  auto now = place_of(placed);
  line.placed = placed;
  if (!was_in) {
    order.insert(order.begin() + now, rank);
    marks.insert(marks.begin() + now, mark);
    return;
  }
  if (now > old) {
    --now;
    std::move(order.begin() + old + 1, order.begin() + now + 1, order.begin() + old);
    std::move(marks.begin() + old + 1, marks.begin() + now + 1, marks.begin() + old);
  } else {
    std::move_backward(order.begin() + now, order.begin() + old, order.begin() + old + 1);
    std::move_backward(marks.begin() + now, marks.begin() + old, marks.begin() + old + 1);
  }
  order[static_cast<size_t>(now)] = rank;
  marks[static_cast<size_t>(now)] = mark;
}

// Brings the order up to date: the lines that changed.
void PooledScheduler::SortChanged(Tier* tier) {
  if (tier->dirty.size() <= kFewLines) {
    for (const uint32_t line : tier->dirty) MoveInOrder(tier, line);
    tier->dirty.clear();
    return;
  }
  std::vector<Rank>& order = tier->order;
  std::erase_if(order, [this](const Rank& rank) { return lines_[rank.line].dirty; });
  const auto old = static_cast<std::ptrdiff_t>(order.size());
  for (const uint32_t at : tier->dirty) {
    Line& line = lines_[at];
    line.dirty = false;
    line.in_order = !line.empty();
    if (line.in_order) order.push_back(RankOf(line.placed = PlaceOf(at), line.account));
  }
  tier->dirty.clear();
  const auto before = [this](const Rank& a, const Rank& b) {
    return a.score != b.score ? a.score > b.score : lines_[a.line].placed.Earlier(lines_[b.line].placed);
  };
  std::sort(order.begin() + old, order.end(), before);
  std::inplace_merge(order.begin(), order.begin() + old, order.end(), before);
  MarkRanks(tier);
}

// Fair shares have changed. Those of one account keep their order among themselves.
void PooledScheduler::ShareAnew() {
  std::vector<int64_t> more;
  for (size_t i = 0; i < share_points_.size(); ++i) {
    const int64_t points = PointsOf(shares_.Of(static_cast<int>(i)));
    more.push_back(points - share_points_[i]);
    share_points_[i] = points;
  }
  for (Tier& tier : tiers_) {
    for (Rank& rank : tier.order) rank.score += more[static_cast<size_t>(rank.account)];
    SortByScore(&tier.order);
    for (auto first = tier.order.begin(); first != tier.order.end();) {
      bool of_one = true;
      auto end = first + 1;
      for (; end != tier.order.end() && end->score == first->score; ++end)
        of_one = of_one && end->account == first->account;
      if (!of_one) {
        std::sort(first, end, [this](const Rank& a, const Rank& b) {
          return lines_[a.line].placed.Earlier(lines_[b.line].placed);
        });
      }
      first = end;
    }
    MarkRanks(&tier);
  }
}

void PooledScheduler::MarkRanks(Tier* tier) {
  tier->marks.clear();
  for (const Rank& rank : tier->order) tier->marks.push_back({rank.kind, rank.limit});
}

}  // namespace overcap::pooled
