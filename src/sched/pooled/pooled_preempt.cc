// SPDX-License-Identifier: Apache-2.0
// Victims: who gives way to a job that is within its caps and does not fit.
#include <algorithm>
#include <span>
#include <tuple>

#include "sched/pooled/pooled_scheduler.h"

namespace overcap::pooled {
namespace {

bool IsIn(const std::vector<JobRef>& jobs, JobRef ref) {
  return std::find(jobs.begin(), jobs.end(), ref) != jobs.end();
}

bool IsMet(const Amounts& missing) {
  return missing[0] <= 0 && missing[1] <= 0 && missing[2] <= 0;
}

}  // namespace

int64_t PooledScheduler::QuantumEnd(const Job& run) const {
  return run.started_s + PartitionAt(run.partition).quantum_s;
}

bool PooledScheduler::MayPreempt(int by_partition, int by_lab, const Job& victim) const {
  const PartitionRule& rule = PartitionAt(by_partition);
  return (rule.preempts & Bit(victim.partition)) != 0 ||
         ((rule.preempts_in_lab & Bit(victim.partition)) != 0 && victim.lab == by_lab);
}

// Whether it may be stopped now; if only its quantum is in the way, the next pass is no later than its end.
bool PooledScheduler::IsCandidate(const Job& victim, int partition, int lab, int64_t now_s) {
  if (victim.state != State::kRunning || !MayPreempt(partition, lab, victim)) return false;
  const int64_t from_s = QuantumEnd(victim);
  if (from_s <= now_s) return true;
  wake_s_ = std::min(wake_s_, from_s);
  return false;
}

Candidate PooledScheduler::CandidateOf(JobRef ref, int64_t now_s) const {
  const Job& job = jobs_[ref];
  const Need& need = job.told.need;
  int64_t unsaved_s = std::max<int64_t>(0, now_s - job.checkpoint_s);
  if (job.told.checkpoint_every_s > 0)
    unsaved_s = std::min(unsaved_s, (now_s - job.started_s) % job.told.checkpoint_every_s);
  return {ref, {need.gpus, need.cpus, need.mem_mb}, need.all_gpus() * unsaved_s};
}

// What is short on a node when `gone` and those that were told to go before have left, and nobody else has
// claimed it.
Amounts PooledScheduler::MissingOn(int node, const Need& need, const std::vector<JobRef>& gone) const {
  const Amounts free = UnclaimedOn(node);
  const Amounts& leaving = uses_[static_cast<size_t>(node)].leaving;
  Amounts missing = {need.gpus - free[0] - leaving[0], need.cpus - free[1] - leaving[1],
                     need.mem_mb - free[2] - leaving[2]};
  for (const JobRef ref : gone) {
    const Job& victim = jobs_[ref];
    for (const GpuShare& share : victim.shares) {
      if (share.node != node) continue;
      const Need& gives = victim.told.need;
      missing[0] -= gives.gpus, missing[1] -= gives.cpus, missing[2] -= gives.mem_mb;
    }
  }
  return missing;
}

// Labmates' jobs that yield, when the lab's caps are full. False: that does not help.
bool PooledScheduler::BudgetVictims(const Line& line, const Job& job, int64_t now_s,
                                    std::vector<JobRef>* victims) {
  Amounts missing = {};
  for (const Check& check : ChecksOf(line.account, line.partition)) {
    const Budget& budget = budgets_[check.budget];
    const int amount = AmountOf(job.told.need, check.unit);
    if (budget.Allows(amount)) continue;
    if (budget.lab < 0) return false;
    missing[check.unit == Unit::kGpus ? 0 : 1] = budget.Deficit(amount);
  }
  if (IsMet(missing)) {  // those that leave make room
    unsure_ = true;
    return false;
  }
  std::vector<Candidate> candidates;
  for (const LabRun& one : lab_runs_[static_cast<size_t>(job.lab)]) {
    if (one.leaving || !PartitionAt(one.partition).counts) continue;
    const Job& run = jobs_[one.job];
    if (!IsCandidate(run, line.partition, job.lab, now_s)) continue;
    Candidate candidate = CandidateOf(one.job, now_s);
    candidate.gives = {run.told.need.all_gpus(), run.told.need.all_cpus(), 0};
    candidates.push_back(candidate);
  }
  std::sort(candidates.begin(), candidates.end(),
            [&](const Candidate& a, const Candidate& b) { return Older(b.job, a.job); });
  const auto choice = ChooseVictims(missing, candidates);
  if (!choice) return false;
  *victims = choice->jobs;
  return true;
}

// Whether too little could be had on a node even if everybody who may be stopped there were; then until when
// that is so if nothing happens there.
std::optional<int64_t> PooledScheduler::NoneBefore(int node, const Line& line, const Job& job,
                                                   int64_t now_s) const {
  const NodeTable::Node& one = nodes_[node];
  const NodeUse& use = uses_[static_cast<size_t>(node)];
  const Need& need = job.told.need;
  if (!one.up || one.gpus < need.gpus) return kForever;
  const PartitionRule& rule = PartitionAt(line.partition);
  const int* runs = &run_gpus_[static_cast<size_t>(node) * rules_.partitions.size()];
  int64_t reach = one.free_gpus + use.leaving[0];
  for (uint64_t left = rule.preempts | rule.preempts_in_lab; left != 0; left &= left - 1)
    reach += runs[__builtin_ctzll(left)];
  if (reach < need.gpus) return kForever;
  Amounts missing = MissingOn(node, need, {});
  int64_t until_s = kForever;
  for (const JobRef ref : use.runs) {
    const Job& run = jobs_[ref];
    if (run.state != State::kRunning || !MayPreempt(line.partition, job.lab, run)) continue;
    const int64_t from_s = QuantumEnd(run);
    if (from_s > now_s) {
      until_s = std::min(until_s, from_s);
      continue;
    }
    const Need& gives = run.told.need;
    missing[0] -= gives.gpus, missing[1] -= gives.cpus, missing[2] -= gives.mem_mb;
  }
  if (IsMet(missing)) return std::nullopt;
  return until_s;
}

// The nodes of a type on which there may be victims for a demand.
VictimMemory& PooledScheduler::VictimNodes(const Line& line, const Job& job, int type, int64_t now_s) {
  const bool by_lab = AnyRuns(PartitionAt(line.partition).preempts_in_lab);
  VictimMemory& memory =
      victim_nodes_.Of(MemoryKey(line.demand, line.partition, by_lab ? job.lab : -1, type),
                       nodes_.OfType(type).size(), log_, [&](VictimMemory* known, int node) {
                         if (nodes_[node].type == type) known->Open(nodes_.PositionOf(node));
                       });
  memory.Expire(now_s);
  const std::span<const int> same = nodes_.OfType(type);
  for (size_t word = 0; word < memory.open.size(); ++word) {
    for (uint64_t left = memory.open[word]; left != 0; left &= left - 1) {
      const size_t at = word * 64 + static_cast<size_t>(__builtin_ctzll(left));
      const auto until_s = NoneBefore(same[at], line, job, now_s);
      if (until_s) memory.Close(at, *until_s);
    }
  }
  if (!memory.next_known) memory.Learn();
  wake_s_ = std::min(wake_s_, memory.next_s);
  return memory;
}

// The nodes of a type with the fewest further victims, losing the least. Nothing: there are too few.
std::optional<PooledScheduler::Plan> PooledScheduler::PlanOn(int type, const Line& line, const Job& job,
                                                             const std::vector<JobRef>& gone, int64_t now_s) {
  struct Offer {
    size_t count = 0;
    int64_t loss = 0;
    int node = 0;
    std::vector<JobRef> victims = {};
    bool operator<(const Offer& other) const {
      return std::tie(count, loss, node) < std::tie(other.count, other.loss, other.node);
    }
  };
  const Need& need = job.told.need;
  const auto wanted = static_cast<size_t>(need.nodes);
  std::vector<Offer> offers;  // the best so far: a heap, the worst in front
  std::vector<Candidate> candidates;
  looked_at_ = VictimNodes(line, job, type, now_s).open;
  for (const JobRef ref : gone) {
    for (const GpuShare& share : jobs_[ref].shares) {
      const size_t at = nodes_.PositionOf(share.node);
      if (nodes_[share.node].type == type) looked_at_[at / 64] |= Bit(static_cast<int>(at % 64));
    }
  }
  for (size_t word = 0, bit = 0; word < looked_at_.size();) {
    if (looked_at_[word] == 0) {
      ++word;
      continue;
    }
    bit = static_cast<size_t>(__builtin_ctzll(looked_at_[word]));
    looked_at_[word] &= looked_at_[word] - 1;
    const int node = nodes_.OfType(type)[word * 64 + bit];
    const NodeTable::Node& one = nodes_[node];
    const NodeUse& use = uses_[static_cast<size_t>(node)];
    if (!one.up || one.gpus < need.gpus || !NodeTakes(node, line.partition, line.limit_s, now_s)) continue;
    if (!HoldAllows(node, need, line.partition, job.lab, line.limit_s, now_s)) continue;
    Offer offer{0, 0, node};
    const Amounts missing = MissingOn(node, need, gone);
    if (!IsMet(missing)) {
      candidates.clear();
      for (const JobRef ref : use.runs) {
        if (IsCandidate(jobs_[ref], line.partition, job.lab, now_s) && !IsIn(gone, ref))
          candidates.push_back(CandidateOf(ref, now_s));
      }
      std::sort(candidates.begin(), candidates.end(),
                [&](const Candidate& a, const Candidate& b) { return Older(b.job, a.job); });
      const size_t most = offers.size() == wanted ? offers.front().count : candidates.size();
      auto choice = ChooseVictims(missing, candidates, most);
      if (!choice) continue;
      offer = {choice->jobs.size(), choice->loss, node, std::move(choice->jobs)};
    }
    if (offers.size() == wanted && !(offer < offers.front())) continue;
    offers.push_back(std::move(offer));
    std::push_heap(offers.begin(), offers.end());
    if (offers.size() <= wanted) continue;
    std::pop_heap(offers.begin(), offers.end());
    offers.pop_back();
  }
  if (offers.size() < wanted) return std::nullopt;
  std::sort(offers.begin(), offers.end());
  Plan plan;
  plan.victims = gone;
  for (const Offer& offer : offers) {
    plan.nodes.push_back(offer.node);
    for (const JobRef victim : offer.victims) {
      if (!IsIn(plan.victims, victim)) plan.victims.push_back(victim);
    }
  }
  for (const JobRef victim : plan.victims) plan.loss += CandidateOf(victim, now_s).loss;
  return plan;
}

bool PooledScheduler::Suffices(const Line& line, const Job& job, const Plan& plan) const {
  for (const Check& check : ChecksOf(line.account, line.partition)) {
    const Budget& budget = budgets_[check.budget];
    const int amount = AmountOf(job.told.need, check.unit);
    if (budget.Allows(amount)) continue;
    int missing = budget.Deficit(amount);
    for (const JobRef victim : plan.victims) {
      if (IsCharged(budget, jobs_[victim])) missing -= AmountOf(jobs_[victim].told.need, check.unit);
    }
    if (missing > 0) return false;
  }
  return std::all_of(plan.nodes.begin(), plan.nodes.end(),
                     [&](int node) { return IsMet(MissingOn(node, job.told.need, plan.victims)); });
}

// Takes out every victim without whom it would do as well, those that would lose most first.
void PooledScheduler::PrunePlan(const Line& line, const Job& job, int64_t now_s, Plan* plan) const {
  std::vector<JobRef> order = plan->victims;
  std::stable_sort(order.begin(), order.end(), [&](JobRef a, JobRef b) {
    return CandidateOf(a, now_s).loss > CandidateOf(b, now_s).loss;
  });
  for (const JobRef victim : order) {
    Plan without = *plan;
    std::erase(without.victims, victim);
    if (Suffices(line, job, without)) *plan = std::move(without);
  }
}

// Of all types.
std::optional<PooledScheduler::Plan> PooledScheduler::BestPlan(const Line& line, const Job& job,
                                                               const std::vector<JobRef>& gone,
                                                               int64_t now_s) {
  std::optional<Plan> best;
  uint64_t types = demands_[static_cast<size_t>(line.demand)].in[static_cast<size_t>(line.partition)].types;
  for (; types != 0; types &= types - 1) {
    const int type = __builtin_ctzll(types);
    const Budget* budget = TypeBudget(job, line.partition, type);
    if (budget != nullptr && !budget->Allows(job.told.need.all_gpus())) continue;
    auto plan = PlanOn(type, line, job, gone, now_s);
    if (!plan) continue;
    if (!best || std::pair(plan->victims.size(), plan->loss) < std::pair(best->victims.size(), best->loss))
      best = std::move(plan);
  }
  return best;
}

bool PooledScheduler::TryPreempt(uint32_t at, JobRef ref, bool over_budget, int64_t now_s) {
  const Line& line = lines_[at];
  const Job& job = jobs_[ref];
  const PartitionRule& rule = PartitionAt(line.partition);
  uint64_t& no_victims =
      demands_[static_cast<size_t>(line.demand)].in[static_cast<size_t>(line.partition)].no_victims;
  // Without labmates who yield, whether there are victims is the same for everybody who asks for the same.
  const bool same_for_all = !over_budget && !AnyRunsInLab(job.lab, rule.preempts_in_lab) && plain_nodes_ &&
                            lab_types_[static_cast<size_t>(job.lab)].empty();
  if (same_for_all && no_victims == pass_) return false;
  std::vector<JobRef> gone;
  if (over_budget && !BudgetVictims(line, job, now_s, &gone)) return false;
  std::optional<Plan> best = BestPlan(line, job, gone, now_s);
  if (!best && same_for_all) no_victims = pass_;
  unsure_ = unsure_ || (!best && over_budget);
  if (!best) return false;
  if (!wanted_holds_.empty()) {  // what is kept for others is worked out only now that it matters
    MakeHolds(now_s);
    if (!MayOvertake(line, ref, job.told.need, now_s)) return false;
    best = BestPlan(line, job, gone, now_s);
    if (!best) return false;
  }
  PrunePlan(line, job, now_s, &*best);
  Claim(ref, *best, line.partition, now_s);
  return true;
}

void PooledScheduler::TellToGo(Job* victim) {
  const size_t partitions = rules_.partitions.size();
  const Need& gives = victim->told.need;
  victim->state = State::kLeaving;
  lab_runs_[static_cast<size_t>(victim->lab)][victim->at_in_lab].leaving = true;
  --all_run_[static_cast<size_t>(victim->partition)];
  --lab_counts_[static_cast<size_t>(victim->lab) * partitions + static_cast<size_t>(victim->partition)];
  Charge(*victim, 1, &Budget::leaving);
  for (const GpuShare& share : victim->shares) {
    Touch(share.node);
    Amounts& leaving = uses_[static_cast<size_t>(share.node)].leaving;
    leaving[0] += gives.gpus, leaving[1] += gives.cpus, leaving[2] += gives.mem_mb;
    run_gpus_[static_cast<size_t>(share.node) * partitions + static_cast<size_t>(victim->partition)] -=
        gives.gpus;
  }
}

void PooledScheduler::IsLeaving(JobRef job) {
  if (jobs_[job].state == State::kRunning) TellToGo(&jobs_[job]);
}

// Tells the victims to go, takes what is free of the job's nodes already and notes what it is owed.
void PooledScheduler::Claim(JobRef ref, const Plan& plan, int partition, int64_t now_s) {
  for (const JobRef one : plan.victims) {
    Job& victim = jobs_[one];
    TellToGo(&victim);
    actions_.push_back({Action::Kind::kPreempt, one, victim.told.key, victim.partition, {}, ref});
  }
  TakeOutOfLines(ref);
  ++stuck_round_;  // what the victims give back beyond the claim may help others
  Job& job = jobs_[ref];
  once_more_ = once_more_ || job.held_in == pass_;
  const Need& need = job.told.need;
  job.state = State::kClaiming;
  job.partition = partition;
  job.started_s = now_s;
  claims_.push_back(ref);
  for (const int node : plan.nodes) {
    const NodeTable::Node& one = nodes_[node];
    const int gpus = std::min(need.gpus, one.free_gpus), cpus = std::clamp(one.free_cpus, 0, need.cpus);
    const int64_t mem = std::clamp<int64_t>(one.free_mem, 0, need.mem_mb);
    job.shares.push_back({node, NodeTable::Lowest(one.free, gpus)});
    nodes_.Take(node, job.shares.back().gpus, cpus, mem);
    Touch(node);
    const Owed owed{ref, need.gpus - gpus, need.cpus - cpus, need.mem_mb - mem};
    if (owed.whole()) continue;
    uses_[static_cast<size_t>(node)].owed.push_back(owed);
    ++job.owed_nodes;
  }
  Charge(job, 1, &Budget::claimed);
}

}  // namespace overcap::pooled
