// SPDX-License-Identifier: Apache-2.0
// The pass: lines in their order, each as far as it goes.
#include <algorithm>
#include <functional>

#include "sched/pooled/pooled_scheduler.h"

namespace overcap::pooled {

const std::vector<Action>& PooledScheduler::Pass(int64_t now_s) {
  actions_.clear();
  wake_s_ = kForever;
  if (!openings_.empty()) {
    const auto next = std::upper_bound(openings_.begin(), openings_.end(), now_s);
    if (next != openings_.begin() && *(next - 1) > opened_s_) ++version_;
    opened_s_ = now_s;
    if (next != openings_.end()) wake_s_ = *next;
  }
  StartReady(now_s);
  bool all = shares_.Refresh(now_s);
  do {
    once_more_ = false;
    ++pass_;
    ClearHolds();
    if (queued_ == 0) break;
    for (Tier& tier : tiers_) Sort(&tier, all);
    for (Tier& tier : tiers_) Walk(&tier, now_s);
    all = false;
  } while (once_more_);
  return actions_;
}

// Whether a job that was not told to go runs in one of these partitions.
bool PooledScheduler::AnyRuns(uint64_t partitions) const {
  for (; partitions != 0; partitions &= partitions - 1) {
    if (all_run_[static_cast<size_t>(__builtin_ctzll(partitions))] > 0) return true;
  }
  return false;
}

// The same of one lab's jobs.
bool PooledScheduler::AnyRunsOf(int lab, uint64_t partitions) const {
  const size_t from = static_cast<size_t>(lab) * rules_.partitions.size();
  for (; partitions != 0; partitions &= partitions - 1) {
    if (lab_run_[from + static_cast<size_t>(__builtin_ctzll(partitions))] > 0) return true;
  }
  return false;
}

// Whether no line of this tier can get anything, whatever it asks for.
bool PooledScheduler::NothingLeft(const Tier& tier) const {
  if (nodes_.free_gpus() > 0 || (cpu_jobs_ && nodes_.free_cpus() > 0)) return false;
  uint64_t victims = 0;
  for (uint64_t left = tier.partitions; left != 0; left &= left - 1) {
    const PartitionRule& rule = PartitionAt(__builtin_ctzll(left));
    victims |= rule.preempts | rule.preempts_in_lab;
  }
  return !AnyRuns(victims);
}

// Whether a job of the same demand, and no longer limit, has found in this round that all that would do is
// kept for others. What is kept grows, and what is free shrinks, until the round is over.
bool PooledScheduler::IsKept(const Place& place, const Demand::InPartition& known) const {
  return known.kept_in == pass_ && wanted_holds_.empty() && lines_[place.line].limit_s >= known.kept_limit_s;
}

// Whether a line's first job would still be there when another one may have its part of a budget.
bool PooledScheduler::IsLater(const Line& line, const Budget& budget, int64_t now_s) {
  return now_s + line.limit_s > budget.free_at_s && (line.empty() || line.first() != budget.first);
}

// Whether TryHead() would find in this round, without keeping anything for anybody, that the line cannot
// start: somebody who asks for the same has found no place and no victims, it would keep others of its lab
// waiting, or all that is short is kept for others already. Most lines of a long queue are like that; it is
// seen without looking at their jobs.
bool PooledScheduler::IsStuck(const Place& place, int64_t now_s) const {
  const Demand& demand = demands_[static_cast<size_t>(place.demand)];
  const Demand::InPartition& known = demand.in[static_cast<size_t>(place.partition)];
  const PartitionRule& rule = PartitionAt(place.partition);
  const int lab = accounts_[static_cast<size_t>(place.account)].lab;
  bool within = true, overtakes = false;
  for (const Check& check : ChecksOf(place.account, place.partition)) {
    const Budget& budget = budgets_[check.budget];
    const int amount = AmountOf(demand.need, check.unit);
    if (budget.Allows(amount)) {
      overtakes = overtakes || (budget.held_in == pass_ && budget.known && amount > budget.spare &&
                                IsLater(lines_[place.line], budget, now_s));
      continue;
    }
    if (budget.held_in != pass_) return false;
    within = false;
  }
  if (AnyRunsOf(lab, rule.preempts_in_lab)) return false;
  if (!within) return rule.preempts_in_lab == 0 || !AnyRuns(rule.preempts & counting_);
  if (overtakes && wanted_holds_.empty()) return true;
  const bool plain = lab_types_[static_cast<size_t>(lab)].empty();
  const bool nowhere = known.blocked == version_ || (plain && IsKept(place, known));
  if (!nowhere || (hold_partitions_ & Bit(place.partition)) == 0) return false;
  return !AnyRuns(rule.preempts) || (known.no_victims == pass_ && plain);
}

void PooledScheduler::Walk(Tier* tier, int64_t now_s) {
  const auto later = [](const Place& a, const Place& b) { return b < a; };
  const auto push = [&](uint32_t line) {
    again_.push_back(PlaceOf(line));
    std::push_heap(again_.begin(), again_.end(), later);
  };
  again_.clear();
  bool look = true;
  for (size_t at = 0; at < tier->order.size() || !again_.empty();) {
    if (look && NothingLeft(*tier)) return;
    Place place;
    if (!again_.empty() && (at == tier->order.size() || again_.front() < tier->order[at])) {
      place = again_.front();
      std::pop_heap(again_.begin(), again_.end(), later);
      again_.pop_back();
    } else {
      place = tier->order[at++];
    }
    look = false;
    if (IsStuck(place, now_s)) continue;
    Line& line = lines_[place.line];
    if (line.empty()) continue;
    const JobRef ref = line.first();
    if (jobs_[ref].told.seq != place.seq || jobs_[ref].told.submit_s != place.submit_s) {
      push(place.line);  // its first job has started in another partition
      continue;
    }
    look = TryHead(place.line, ref, now_s) == Verdict::kStarted;
    if (look && !lines_[place.line].empty()) push(place.line);
  }
}

// Whether every budget allows it now. Those that do not are held for it, unless they are for an earlier one.
bool PooledScheduler::WithinBudgets(const Line& line, JobRef ref, const Need& need) {
  bool within = true;
  for (const Check& check : ChecksOf(line.account, line.partition)) {
    Budget& budget = budgets_[check.budget];
    if (budget.Allows(AmountOf(need, check.unit))) continue;
    within = false;
    if (budget.held_in == pass_) continue;
    HoldBudget(&budget, ref, 0);
  }
  return within;
}

void PooledScheduler::HoldBudget(Budget* budget, JobRef ref, int64_t not_before_s) {
  budget->held_in = jobs_[ref].held_in = pass_;
  budget->first = ref;
  budget->not_before_s = not_before_s;
  budget->known = false;
}

// When the first job that a budget keeps waiting can have its part, and what is left beside it then.
void PooledScheduler::LearnBudget(Budget* budget, int64_t now_s) {
  budget->known = true;
  const int wanted = AmountOf(jobs_[budget->first].told.need, budget->unit);
  ends_.clear();
  const auto look_at = [&](const std::vector<JobRef>& runs) {
    for (const JobRef ref : runs) {
      const Job& run = jobs_[ref];
      if (!IsCharged(*budget, run)) continue;
      const PartitionRule& rule = PartitionAt(run.partition);
      const int64_t limit_s = LimitIn(rule, run.told.limit_s);
      const int64_t end_s =
          run.state == State::kLeaving ? now_s + rule.grace_s : std::max(now_s, run.started_s + limit_s);
      ends_.emplace_back(end_s, AmountOf(run.told.need, budget->unit));
    }
  };
  const int lab = budget->lab >= 0       ? budget->lab
                  : budget->account >= 0 ? accounts_[static_cast<size_t>(budget->account)].lab
                                         : -1;
  if (lab >= 0) {
    look_at(lab_runs_[static_cast<size_t>(lab)]);
  } else {
    for (const std::vector<JobRef>& runs : lab_runs_) look_at(runs);
  }
  std::sort(ends_.begin(), ends_.end());
  int left = budget->limit - budget->running - budget->claimed - wanted;
  budget->free_at_s = std::max(now_s, budget->not_before_s);
  for (const auto& [end_s, amount] : ends_) {
    if (left >= 0 && end_s > budget->free_at_s) break;
    left += amount;
    budget->free_at_s = std::max(budget->free_at_s, end_s);
  }
  budget->spare = left;
  if (left < 0) budget->free_at_s = now_s, budget->spare = 0;
}

// Whether it would keep nobody waiting longer whom a budget keeps waiting.
bool PooledScheduler::MayOvertake(const Line& line, JobRef ref, const Need& need, int64_t now_s) {
  for (const Check& check : ChecksOf(line.account, line.partition)) {
    Budget& budget = budgets_[check.budget];
    if (budget.held_in != pass_ || budget.first == ref) continue;
    if (!budget.known) LearnBudget(&budget, now_s);
    if (now_s + line.limit_s > budget.free_at_s && AmountOf(need, check.unit) > budget.spare) return false;
  }
  return true;
}

void PooledScheduler::SpendSpare(const Line& line, const Need& need, int64_t now_s) {
  for (const Check& check : ChecksOf(line.account, line.partition)) {
    Budget& budget = budgets_[check.budget];
    if (budget.held_in == pass_ && budget.known && now_s + line.limit_s > budget.free_at_s)
      budget.spare -= AmountOf(need, check.unit);
  }
}

Budget* PooledScheduler::TypeBudget(const Job& job, int partition, int type) {
  const std::vector<uint32_t>& types = lab_types_[static_cast<size_t>(job.lab)];
  if (types.empty() || job.told.need.gpus == 0 || !PartitionAt(partition).counts) return nullptr;
  return &budgets_[types[static_cast<size_t>(type)]];
}

bool PooledScheduler::IsOpen(int node, int64_t from_s, int64_t until_s) const {
  for (const ClosedTime& time : rules_.nodes[static_cast<size_t>(node)].closed) {
    if (time.from_s < until_s && from_s < time.until_s) return false;
  }
  return true;
}

bool PooledScheduler::NodeTakes(int node, int partition, int64_t limit_s, int64_t now_s) const {
  return plain_nodes_ || ((rules_.nodes[static_cast<size_t>(node)].partitions & Bit(partition)) != 0 &&
                          IsOpen(node, now_s, now_s + std::min(limit_s, kForever)));
}

bool PooledScheduler::FindPlace(const Line& line, const Job& job, bool with_holds, int64_t now_s) {
  const Need& need = job.told.need;
  uint64_t types = demands_[static_cast<size_t>(line.demand)].in[static_cast<size_t>(line.partition)].types;
  if (need.gpus == 0 && (types & Bit(nodes_.types())) != 0) {  // nodes without GPUs first
    if (FindOnType(line, job, nodes_.types(), with_holds, now_s)) return true;
    types &= ~Bit(nodes_.types());
  }
  for (; types != 0; types &= types - 1) {
    const int type = __builtin_ctzll(types);
    const Budget* budget = TypeBudget(job, line.partition, type);
    if (budget != nullptr && !budget->Allows(need.all_gpus())) continue;
    if (FindOnType(line, job, type, with_holds, now_s)) return true;
  }
  return false;
}

bool PooledScheduler::FindOnType(const Line& line, const Job& job, int type, bool with_holds, int64_t now_s) {
  const Need& need = job.told.need;
  if (plain_nodes_ && !with_holds)
    return nodes_.Place(
        need, type, [](int) { return true; }, &found_);
  const auto allowed = [&](int node) {
    return NodeTakes(node, line.partition, line.limit_s, now_s) &&
           (!with_holds || HoldAllows(node, need, line.partition, job.lab, line.limit_s, now_s));
  };
  return nodes_.Place(need, type, allowed, &found_);
}

// A place that is not kept for others; if there is none that is noted.
bool PooledScheduler::FindBesideHolds(const Line& line, const Job& job, int64_t now_s,
                                      Demand::InPartition* known) {
  if (FindPlace(line, job, true, now_s)) return true;
  const bool same_for_all =
      lab_types_[static_cast<size_t>(job.lab)].empty() && (yield_in_lab_ & Bit(line.partition)) == 0;
  if (same_for_all && (known->kept_in != pass_ || line.limit_s < known->kept_limit_s))
    known->kept_in = pass_, known->kept_limit_s = line.limit_s;
  return false;
}

PooledScheduler::Verdict PooledScheduler::TryHead(uint32_t at, JobRef ref, int64_t now_s) {
  const Line& line = lines_[at];
  const Job& job = jobs_[ref];
  const Need& need = job.told.need;
  const int partition = line.partition;
  const PartitionRule& rule = PartitionAt(partition);
  if (!WithinBudgets(line, ref, need)) {
    const bool may_ask = rule.preempts_in_lab != 0 && MayOvertake(line, ref, need, now_s);
    return may_ask && TryPreempt(at, ref, true, now_s) ? Verdict::kStarted : Verdict::kStuck;
  }
  Demand::InPartition& known = demands_[static_cast<size_t>(line.demand)].in[static_cast<size_t>(partition)];
  bool fits = known.blocked != version_ && FindPlace(line, job, false, now_s);
  if (!fits && plain_nodes_ && lab_types_[static_cast<size_t>(job.lab)].empty()) known.blocked = version_;
  const bool hold_taken = (hold_partitions_ & Bit(partition)) != 0;
  const bool asks_others = AnyRuns(rule.preempts) || AnyRunsOf(job.lab, rule.preempts_in_lab);
  if (!fits && hold_taken && !asks_others) return Verdict::kStuck;
  if (fits) MakeHolds(now_s);
  if (!MayOvertake(line, ref, need, now_s)) return Verdict::kStuck;
  if (fits && (holds_.empty() || FindBesideHolds(line, job, now_s, &known))) {
    Start(ref, at, now_s);
    return Verdict::kStarted;
  }
  if (asks_others && TryPreempt(at, ref, false, now_s)) return Verdict::kStarted;
  if (!hold_taken) WantHold(ref, partition);
  return Verdict::kStuck;
}

void PooledScheduler::Start(JobRef ref, uint32_t at, int64_t now_s) {
  Job& job = jobs_[ref];
  const int partition = lines_[at].partition;
  SpendSpare(lines_[at], job.told.need, now_s);
  for (const int node : found_) SpendHold(node, job.told.need, partition, job.lab, lines_[at].limit_s, now_s);
  once_more_ = once_more_ || job.held_in == pass_;
  TakeOutOfLines(ref);
  job.partition = partition;
  TakeShares(&job, found_);
  Begin(ref, now_s);
  actions_.push_back({Action::Kind::kStart, ref, job.told.key, partition, job.shares, 0});
}

}  // namespace overcap::pooled
