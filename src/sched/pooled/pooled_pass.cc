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
  for (Tier& tier : tiers_) SortChanged(&tier);
  if (shares_.Refresh(now_s)) ShareAnew();
  do {
    once_more_ = false;
    ++pass_;
    ++stuck_round_;
    ClearHolds();
    for (Tier& tier : tiers_) SortChanged(&tier);
    if (queued_ == 0) break;
    for (Tier& tier : tiers_) Walk(&tier, now_s);
  } while (once_more_);
  return actions_;
}

void PooledScheduler::Forget() {
  victim_nodes_.Forget();
  free_times_.Forget();
  ++version_;
  for (uint32_t line = 0; line < lines_.size(); ++line) MarkDirty(line);
}

// Whether a job that was not told to go runs in one of these partitions.
bool PooledScheduler::AnyRuns(uint64_t partitions) const {
  for (; partitions != 0; partitions &= partitions - 1) {
    if (all_run_[static_cast<size_t>(__builtin_ctzll(partitions))] > 0) return true;
  }
  return false;
}

bool PooledScheduler::AnyRunsInLab(int lab, uint64_t partitions) const {
  const size_t first = static_cast<size_t>(lab) * rules_.partitions.size();
  for (; partitions != 0; partitions &= partitions - 1) {
    if (lab_counts_[first + static_cast<size_t>(__builtin_ctzll(partitions))] > 0) return true;
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

// Whether TryHead() would find in this round, without keeping anything for anybody, that no line of this kind
// can start, whatever its limit: somebody who asks for the same has found no place and no victims, or all
// that is short is kept for others already.
bool PooledScheduler::IsStuck(const LineKind& kind) const {
  const Demand& demand = demands_[static_cast<size_t>(kind.demand)];
  const Demand::InPartition& known = demand.in[static_cast<size_t>(kind.partition)];
  const PartitionRule& rule = PartitionAt(kind.partition);
  bool within = true;
  for (const Check& check : checks_[kind.checks]) {
    const Budget& budget = budgets_[check.budget];
    if (budget.Allows(AmountOf(demand.need, check.unit))) continue;
    if (budget.held_in != pass_) return false;
    within = false;
  }
  if (AnyRunsInLab(kind.lab, rule.preempts_in_lab)) return false;
  if (!within) return rule.preempts_in_lab == 0 || !AnyRunsInLab(kind.lab, rule.preempts & counting_);
  if (known.blocked != version_ || (hold_partitions_ & Bit(kind.partition)) == 0) return false;
  if (!AnyRuns(rule.preempts)) return true;
  return known.no_victims == pass_ && lab_types_[static_cast<size_t>(kind.lab)].empty();
}

// A line was found stuck: so is every other of its kind whose limit is as long, until the round is over or
// somebody else is told to go. Those are passed over: a cap that was filled meanwhile is kept for none of
// them before the next round, which looks at them anew.
void PooledScheduler::NoteStuck(const Place& place) {
  if (every_line_) return;
  const LineKind& kind = kinds_[place.kind];
  Stuck& stuck = stuck_[place.kind];
  uint32_t from_limit = ~uint32_t{0};
  if (IsStuck(kind)) {
    from_limit = 0;
  } else if (!unsure_ && kind.unlike_in != pass_) {
    from_limit = place.limit;
  } else {
    return;
  }
  stuck.from_limit = stuck.round == stuck_round_ ? std::min(stuck.from_limit, from_limit) : from_limit;
  stuck.round = stuck_round_;
}

void PooledScheduler::Walk(Tier* tier, int64_t now_s) {
  const auto later = [](const Place& a, const Place& b) { return b < a; };
  const auto push = [&](uint32_t line) {
    again_.push_back(PlaceOf(line));
    std::push_heap(again_.begin(), again_.end(), later);
  };
  const auto is_stuck = [this](uint32_t kind, uint32_t limit) {
    return stuck_[kind].round == stuck_round_ && limit >= stuck_[kind].from_limit;
  };
  again_.clear();
  bool look = true;
  for (size_t at = 0; at < tier->order.size() || !again_.empty();) {
    if (look && NothingLeft(*tier)) return;
    look = false;
    Place place;
    if (!again_.empty() && (at == tier->order.size() || !Before(tier->order[at], again_.front()))) {
      place = again_.front();
      std::pop_heap(again_.begin(), again_.end(), later);
      again_.pop_back();
      if (is_stuck(place.kind, place.limit)) continue;
    } else {
      const Mark& mark = tier->marks[at++];
      if (is_stuck(mark.kind, mark.limit)) continue;
      place = lines_[tier->order[at - 1].line].placed;
    }
    Line& line = lines_[place.line];
    if (line.empty()) continue;
    const JobRef ref = line.first();
    if (jobs_[ref].told.seq != place.seq || jobs_[ref].told.submit_s != place.submit_s) {
      push(place.line);  // its first job has started in another partition
      continue;
    }
    unsure_ = false;
    const bool stuck = !every_line_ && IsStuck(kinds_[place.kind]);
    look = !stuck && TryHead(place.line, ref, now_s) == Verdict::kStarted;
    if (!look) NoteStuck(place);
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
    HoldBudget(&budget, ref, line.partition, 0);
  }
  return within;
}

void PooledScheduler::HoldBudget(Budget* budget, JobRef ref, int partition, int64_t not_before_s) {
  budget->held_in = jobs_[ref].held_in = pass_;
  budget->first = ref;
  budget->not_before_s = not_before_s;
  budget->known = false;
  const Job& job = jobs_[ref];  // in its other partitions it alone may have what is kept for it
  for (uint64_t left = job.told.partitions & ~Bit(partition); left != 0; left &= left - 1)
    kinds_[lines_[LineOf(__builtin_ctzll(left), job)].kind].unlike_in = pass_;
}

// When the first job that a budget keeps waiting can have its part, and what is left beside it then.
void PooledScheduler::LearnBudget(Budget* budget, int64_t now_s) {
  budget->known = true;
  const int wanted = AmountOf(jobs_[budget->first].told.need, budget->unit);
  ends_.clear();
  const auto look_at = [&](int lab) {
    for (const LabRun& run : lab_runs_[static_cast<size_t>(lab)]) {
      if (!IsCharged(*budget, run)) continue;
      const int64_t end_s =
          run.leaving ? now_s + PartitionAt(run.partition).grace_s : std::max(now_s, run.end_s);
      ends_.emplace_back(end_s, budget->unit == Unit::kGpus   ? run.gpus
                                : budget->unit == Unit::kCpus ? run.cpus
                                                              : 1);
    }
  };
  if (budget->lab >= 0) {
    look_at(budget->lab);
  } else if (budget->account >= 0) {
    look_at(accounts_[static_cast<size_t>(budget->account)].lab);
  } else {
    for (const int lab : user_labs_[static_cast<size_t>(budget->user)]) look_at(lab);
  }
  std::make_heap(ends_.begin(), ends_.end(), std::greater<>());
  int left = budget->limit - budget->running - budget->claimed - wanted;
  budget->free_at_s = std::max(now_s, budget->not_before_s);
  for (; !ends_.empty(); ends_.pop_back()) {
    std::pop_heap(ends_.begin(), ends_.end(), std::greater<>());
    const auto [end_s, amount] = ends_.back();
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
  const bool asks_others = AnyRuns(rule.preempts) || AnyRunsInLab(job.lab, rule.preempts_in_lab);
  if (!fits && hold_taken && !asks_others) return Verdict::kStuck;
  if (fits) MakeHolds(now_s);
  if (!MayOvertake(line, ref, need, now_s)) return Verdict::kStuck;
  if (fits && (holds_.empty() || FindPlace(line, job, true, now_s))) {
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
