// SPDX-License-Identifier: Apache-2.0
// EASY backfill: nodes that are kept for jobs that cannot start yet, and who may use them until then.
#include <algorithm>
#include <span>
#include <tuple>

#include "sched/pooled/pooled_scheduler.h"

namespace overcap::pooled {
namespace {

constexpr size_t kFewNodes = 64;  // of one type

}  // namespace

void PooledScheduler::ClearHolds() {
  for (const Hold& hold : holds_) {
    for (const Hold::Part& part : hold.parts) uses_[static_cast<size_t>(part.node)].hold = -1;
  }
  holds_.clear();
  wanted_holds_.clear();
  hold_partitions_ = 0;
}

// Noted only: what it keeps is worked out when somebody could take it.
void PooledScheduler::WantHold(JobRef ref, int partition) {
  hold_partitions_ |= Bit(partition);
  jobs_[ref].held_in = pass_;
  wanted_holds_.emplace_back(ref, partition);
}

void PooledScheduler::MakeHolds(int64_t now_s) {
  for (const auto& [ref, partition] : wanted_holds_) {
    if (jobs_[ref].state == State::kQueued) MakeHold(ref, partition, now_s);
  }
  wanted_holds_.clear();
}

// When a run is over as far as `viewer`, waiting in `partition`, is concerned: one that it may stop ends with
// its quantum.
int64_t PooledScheduler::EndFor(const Job& viewer, int partition, const Job& run, int64_t now_s) const {
  const PartitionRule& rule = PartitionAt(run.partition);
  if (run.state == State::kLeaving) return now_s + rule.grace_s;
  const int64_t limit_s = LimitIn(rule, run.told.limit_s);
  const int64_t end_s = std::max(now_s, run.started_s + limit_s);
  return MayPreempt(partition, viewer.lab, run)
             ? std::min(end_s, std::max(now_s, QuantumEnd(run)) + rule.grace_s)
             : end_s;
}

// Whether EndFor() is a number of seconds from now, and when that changes.
PooledScheduler::EndChange PooledScheduler::EndChangeOf(const Job& viewer, int partition, const Job& run,
                                                        int64_t now_s) const {
  const PartitionRule& rule = PartitionAt(run.partition);
  if (run.state == State::kLeaving) return {true, kForever};
  const int64_t limit_s = run.started_s + LimitIn(rule, run.told.limit_s);
  if (limit_s <= now_s) return {true, kForever};
  if (!MayPreempt(partition, viewer.lab, run)) return {false, limit_s};
  const int64_t quantum_s = QuantumEnd(run);
  if (now_s < quantum_s) return {false, std::min(quantum_s, limit_s)};
  if (now_s + rule.grace_s < limit_s) return {true, limit_s - rule.grace_s};
  return {false, limit_s};
}

Amounts PooledScheduler::UnclaimedOn(int node) const {
  const NodeTable::Node& one = nodes_[node];
  Amounts free = {one.free_gpus, one.free_cpus, one.free_mem};
  for (const Owed& owed : uses_[static_cast<size_t>(node)].owed)
    free[0] -= owed.gpus, free[1] -= owed.cpus, free[2] -= owed.mem;
  return free;
}

// The earliest time at which one share of the job fits on the node, and until when that is known if nothing
// happens there; kForever: nobody knows. Runs end at a time, or some seconds from now: what was told to go,
// and what may be stopped. The order of ends changes only when one of the latter passes one of the former.
FreeMemory::Entry PooledScheduler::FreeAt(const Job& job, int partition, int node, int64_t now_s) {
  const Need& need = job.told.need;
  const NodeUse& use = uses_[static_cast<size_t>(node)];
  Amounts free = UnclaimedOn(node);
  const auto fits = [&] { return free[0] >= need.gpus && free[1] >= need.cpus && free[2] >= need.mem_mb; };
  if (fits()) return {0, kForever, true};
  std::vector<NodeEnd>& ends = node_ends_;
  ends.clear();
  for (const JobRef run : use.runs) {
    const int64_t end_s = EndFor(job, partition, jobs_[run], now_s);
    const EndChange change = EndChangeOf(job, partition, jobs_[run], now_s);
    ends.push_back({end_s, change.next_s, change.moves, run});
  }
  std::sort(ends.begin(), ends.end(), [](const NodeEnd& a, const NodeEnd& b) {
    return std::tie(a.end_s, a.run) < std::tie(b.end_s, b.run);
  });
  FreeMemory::Entry found{kForever, kForever, false};
  for (const NodeEnd& end : ends) {
    const Need& theirs = jobs_[end.run].told.need;
    free[0] += theirs.gpus, free[1] += theirs.cpus, free[2] += theirs.mem_mb;
    if (!fits()) continue;
    found.value = end.moves ? end.end_s - now_s : end.end_s;
    found.moves = end.moves;
    break;
  }
  for (const NodeEnd& end : ends) {
    found.until_s = std::min(found.until_s, end.next_s);
    for (const NodeEnd& other : ends) {
      if (!end.moves || other.moves || other.end_s < end.end_s) continue;
      found.until_s = std::min(found.until_s, now_s + std::max<int64_t>(1, other.end_s - end.end_s));
    }
  }
  return found;
}

// The same, for now only; kForever also when it is not before `before_s`.
int64_t PooledScheduler::FreeNow(const Job& job, int partition, int node, int64_t now_s, int64_t before_s) {
  const Need& need = job.told.need;
  const NodeUse& use = uses_[static_cast<size_t>(node)];
  Amounts free = UnclaimedOn(node);
  const auto fits = [&] { return free[0] >= need.gpus && free[1] >= need.cpus && free[2] >= need.mem_mb; };
  if (fits()) return now_s;
  ends_.clear();
  int64_t gpus = free[0];
  for (const JobRef run : use.runs) {
    const int64_t end_s = EndFor(job, partition, jobs_[run], now_s);
    if (end_s >= before_s) continue;
    ends_.emplace_back(end_s, static_cast<int>(run));
    gpus += jobs_[run].told.need.gpus;
  }
  if (gpus < need.gpus) return kForever;
  std::sort(ends_.begin(), ends_.end());
  for (const auto& [end_s, run] : ends_) {
    const Need& theirs = jobs_[static_cast<JobRef>(run)].told.need;
    free[0] += theirs.gpus, free[1] += theirs.cpus, free[2] += theirs.mem_mb;
    if (fits()) return end_s;
  }
  return kForever;
}

uint64_t PooledScheduler::MemoryKey(int demand, int partition, int lab, int type) const {
  uint64_t key = static_cast<uint64_t>(demand) * rules_.partitions.size() + static_cast<uint64_t>(partition);
  key = key * (rules_.labs.size() + 1) + static_cast<uint64_t>(lab + 1);
  return key * (static_cast<uint64_t>(nodes_.types()) + 1) + static_cast<uint64_t>(type);
}

// What is known of the nodes of a type for a demand.
FreeMemory& PooledScheduler::FreeTimes(const Job& job, int partition, int type) {
  const bool by_lab = AnyRuns(PartitionAt(partition).preempts_in_lab);
  return free_times_.Of(MemoryKey(job.demand, partition, by_lab ? job.lab : -1, type),
                        nodes_.OfType(type).size(), log_, [&](FreeMemory* memory, int node) {
                          if (nodes_[node].type == type) memory->nodes[nodes_.PositionOf(node)] = {};
                        });
}

// The nodes that are free first.
void PooledScheduler::MakeHold(JobRef ref, int partition, int64_t now_s) {
  const Job& job = jobs_[ref];
  const Need& need = job.told.need;
  const int64_t limit_s = LimitIn(PartitionAt(partition), job.told.limit_s);
  std::vector<std::pair<int64_t, int>> times, best;
  int64_t best_s = kForever;
  uint64_t types = demands_[static_cast<size_t>(job.demand)].in[static_cast<size_t>(partition)].types;
  for (; types != 0; types &= types - 1) {
    const int type = __builtin_ctzll(types);
    const Budget* budget = TypeBudget(job, partition, type);
    if (budget != nullptr && !budget->Allows(need.all_gpus())) continue;
    times.clear();
    const std::span<const int> same = nodes_.OfType(type);
    const bool few = same.size() < kFewNodes;  // then to remember costs more than it spares
    FreeMemory* memory = few ? nullptr : &FreeTimes(job, partition, type);
    const auto nodes = static_cast<size_t>(need.nodes);
    int64_t most_s = best_s;  // later ones are of no use
    for (size_t at = 0; at < same.size(); ++at) {
      const int node = same[at];
      if (few && (nodes_[node].gpus < need.gpus || uses_[static_cast<size_t>(node)].hold >= 0)) continue;
      int64_t at_s = 0;
      if (few) {
        at_s = FreeNow(job, partition, node, now_s, most_s);
      } else {
        FreeMemory::Entry& known = memory->nodes[at];
        if (known.until_s <= now_s) known = FreeAt(job, partition, node, now_s);
        at_s = known.moves ? now_s + known.value : std::max(now_s, known.value);
      }
      if (at_s >= most_s) continue;
      if (!nodes_[node].up || nodes_[node].gpus < need.gpus || uses_[static_cast<size_t>(node)].hold >= 0)
        continue;
      if (!NodeTakes(node, partition, limit_s, at_s)) continue;
      times.emplace_back(at_s, node);
      if (nodes == 1) most_s = at_s;
    }
    if (times.size() < nodes) continue;
    std::nth_element(times.begin(), times.begin() + need.nodes - 1, times.end());
    if (times[nodes - 1].first >= best_s) continue;
    best_s = times[nodes - 1].first;
    best.assign(times.begin(), times.begin() + need.nodes);
  }
  if (best.empty()) return;
  Hold hold{ref, partition, best_s, {}};
  for (const auto& [at_s, node] : best) {
    const NodeTable::Node& one = nodes_[node];
    NodeUse& use = uses_[static_cast<size_t>(node)];
    Amounts free = {one.free_gpus, one.free_cpus, one.free_mem};
    for (const Owed& owed : use.owed) free[0] -= owed.gpus, free[1] -= owed.cpus, free[2] -= owed.mem;
    for (const JobRef run : use.runs) {
      if (EndFor(job, partition, jobs_[run], now_s) > best_s) continue;
      const Need& theirs = jobs_[run].told.need;
      free[0] += theirs.gpus, free[1] += theirs.cpus, free[2] += theirs.mem_mb;
    }
    use.hold = static_cast<int>(holds_.size());
    use.hold_part = hold.parts.size();
    hold.parts.push_back({node, static_cast<int>(free[0]) - need.gpus, static_cast<int>(free[1]) - need.cpus,
                          free[2] - need.mem_mb});
  }
  holds_.push_back(std::move(hold));
  for (const Check& check : ChecksOf(job.told.account, partition)) {
    if (budgets_[check.budget].held_in != pass_) HoldBudget(&budgets_[check.budget], ref, partition, best_s);
  }
}

// Whether somebody who starts on the node now is gone when the hold begins: it has ended, or can be stopped
// for it.
bool PooledScheduler::GoneBefore(const Hold& hold, int partition, int lab, int64_t limit_s,
                                 int64_t now_s) const {
  const PartitionRule& rule = PartitionAt(partition);
  int64_t stays_s = limit_s;
  const PartitionRule& theirs = PartitionAt(hold.partition);
  const bool yields = (theirs.preempts & Bit(partition)) != 0 ||
                      ((theirs.preempts_in_lab & Bit(partition)) != 0 && jobs_[hold.job].lab == lab);
  if (yields) stays_s = std::min(stays_s, rule.quantum_s + rule.grace_s);
  return now_s + stays_s <= hold.from_s;
}

bool PooledScheduler::HoldAllows(int node, const Need& need, int partition, int lab, int64_t limit_s,
                                 int64_t now_s) const {
  const NodeUse& use = uses_[static_cast<size_t>(node)];
  if (use.hold < 0) return true;
  const Hold& hold = holds_[static_cast<size_t>(use.hold)];
  if (GoneBefore(hold, partition, lab, limit_s, now_s)) return true;
  const Hold::Part& part = hold.parts[use.hold_part];
  return need.gpus <= part.spare_gpus && need.cpus <= part.spare_cpus && need.mem_mb <= part.spare_mem;
}

void PooledScheduler::SpendHold(int node, const Need& need, int partition, int lab, int64_t limit_s,
                                int64_t now_s) {
  const NodeUse& use = uses_[static_cast<size_t>(node)];
  if (use.hold < 0) return;
  Hold& hold = holds_[static_cast<size_t>(use.hold)];
  if (GoneBefore(hold, partition, lab, limit_s, now_s)) return;
  Hold::Part& part = hold.parts[use.hold_part];
  part.spare_gpus -= need.gpus, part.spare_cpus -= need.cpus, part.spare_mem -= need.mem_mb;
}

}  // namespace overcap::pooled
