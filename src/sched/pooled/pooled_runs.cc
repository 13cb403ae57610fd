// SPDX-License-Identifier: Apache-2.0
// Jobs that run, claims of those that wait for victims, and what both count for.
#include <algorithm>
#include <unordered_map>

#include "sched/pooled/pooled_scheduler.h"

namespace overcap::pooled {
namespace {

// Jobs without GPUs count in the fair share too.
double ShareOf(const Need& need) {
  return need.gpus > 0 ? need.all_gpus() : need.all_cpus() / 8.0;
}

}  // namespace

void PooledScheduler::Charge(const Job& job, int sign, int Budget::*part) {
  for (const Check& check : ChecksOf(job.told.account, job.partition))
    budgets_[check.budget].*part += sign * AmountOf(job.told.need, check.unit);
  const std::vector<uint32_t>& types = lab_types_[static_cast<size_t>(job.lab)];
  if (types.empty() || job.told.need.gpus == 0 || !PartitionAt(job.partition).counts) return;
  const int type = nodes_[job.shares.front().node].type;
  budgets_[types[static_cast<size_t>(type)]].*part += sign * job.told.need.all_gpus();
}

bool PooledScheduler::IsCharged(const Budget& budget, const Job& job) const {
  const PartitionRule& partition = PartitionAt(job.partition);
  if (budget.lab >= 0) {
    const bool of_type = budget.type < 0 || nodes_[job.shares.front().node].type == budget.type;
    return partition.counts && job.lab == budget.lab && of_type;
  }
  if (budget.account >= 0) return partition.counts && !partition.yields && job.told.account == budget.account;
  return job.partition == budget.partition && job.user == budget.user;
}

bool PooledScheduler::IsCharged(const Budget& budget, const LabRun& run) const {
  const PartitionRule& partition = PartitionAt(run.partition);
  if (budget.lab >= 0) return partition.counts && (budget.type < 0 || run.type == budget.type);
  if (budget.account >= 0) return partition.counts && !partition.yields && run.account == budget.account;
  return run.partition == budget.partition && run.user == budget.user;
}

// Something has changed on a node: what was remembered of it is not known any longer.
void PooledScheduler::Touch(int node) {
  log_.Touch(node, 1024 + 2 * uses_.size());
}

JobRef PooledScheduler::Adopt(const PoolJob& told, int partition, std::vector<GpuShare> shares,
                              int64_t started_s) {
  const JobRef ref = NewJob(told);
  Job& job = jobs_[ref];
  job.partition = partition;
  job.shares = std::move(shares);
  for (const GpuShare& share : job.shares)
    nodes_.Take(share.node, share.gpus, told.need.cpus, told.need.mem_mb);
  Begin(ref, started_s);
  return ref;
}

void PooledScheduler::TakeShares(Job* job, const std::vector<int>& found) {
  const Need& need = job->told.need;
  job->shares.clear();
  for (const int node : found) {
    const uint64_t gpus = NodeTable::Lowest(nodes_[node].free, need.gpus);
    nodes_.Take(node, gpus, need.cpus, need.mem_mb);
    job->shares.push_back({node, gpus});
  }
}

// It runs from now on, where its shares are.
void PooledScheduler::Begin(JobRef ref, int64_t now_s) {
  Job& job = jobs_[ref];
  job.state = State::kRunning;
  job.started_s = job.checkpoint_s = now_s;
  ++running_;
  std::vector<LabRun>& runs = lab_runs_[static_cast<size_t>(job.lab)];
  job.at_in_lab = static_cast<uint32_t>(runs.size());
  const Need& need = job.told.need;
  runs.push_back({ref, job.partition, job.told.account, job.user,
                  job.shares.empty() ? -1 : nodes_[job.shares.front().node].type, need.all_gpus(),
                  need.all_cpus(), false, now_s + LimitIn(PartitionAt(job.partition), job.told.limit_s)});
  const size_t partitions = rules_.partitions.size();
  for (const GpuShare& share : job.shares) {
    Touch(share.node);
    uses_[static_cast<size_t>(share.node)].runs.push_back(ref);
    run_gpus_[static_cast<size_t>(share.node) * partitions + static_cast<size_t>(job.partition)] +=
        job.told.need.gpus;
  }
  ++all_run_[static_cast<size_t>(job.partition)];
  int& of_lab = lab_counts_[static_cast<size_t>(job.lab) * partitions + static_cast<size_t>(job.partition)];
  if (++of_lab == 1 && (preempted_ & Bit(job.partition)) != 0) ++stuck_round_;  // there may be victims now
  Charge(job, 1, &Budget::running);
  shares_.Change(job.told.account, ShareOf(job.told.need) * PartitionAt(job.partition).charge, now_s);
}

// It runs no longer: what it had goes to those that claim it, and else is free.
void PooledScheduler::Leave(JobRef ref, int64_t now_s) {
  Job& job = jobs_[ref];
  const bool told_to_go = job.state == State::kLeaving;
  const Need& need = job.told.need;
  --running_;
  ++version_;
  Charge(job, -1, &Budget::running);
  if (told_to_go) Charge(job, -1, &Budget::leaving);
  shares_.Change(job.told.account, -ShareOf(need) * PartitionAt(job.partition).charge, now_s);
  std::vector<LabRun>& runs = lab_runs_[static_cast<size_t>(job.lab)];
  runs[job.at_in_lab] = runs.back();
  jobs_[runs.back().job].at_in_lab = job.at_in_lab;
  runs.pop_back();
  const size_t partitions = rules_.partitions.size();
  if (!told_to_go) {
    --all_run_[static_cast<size_t>(job.partition)];
    --lab_counts_[static_cast<size_t>(job.lab) * partitions + static_cast<size_t>(job.partition)];
  }
  for (const GpuShare& share : job.shares) {
    Touch(share.node);
    NodeUse& use = uses_[static_cast<size_t>(share.node)];
    std::erase(use.runs, ref);
    if (told_to_go) {
      use.leaving[0] -= need.gpus, use.leaving[1] -= need.cpus, use.leaving[2] -= need.mem_mb;
    } else {
      run_gpus_[static_cast<size_t>(share.node) * partitions + static_cast<size_t>(job.partition)] -=
          need.gpus;
    }
    nodes_.Give(share.node, share.gpus, need.cpus, need.mem_mb);
    if (!use.owed.empty()) FeedClaims(share.node);
  }
  job.shares.clear();
  job.partition = -1;
}

// What came free on a node goes to its claims, the oldest first.
void PooledScheduler::FeedClaims(int node) {
  if (!nodes_[node].up) return;
  std::vector<Owed>& owed = uses_[static_cast<size_t>(node)].owed;
  for (Owed& one : owed) {
    Job& job = jobs_[one.job];
    const NodeTable::Node& free = nodes_[node];
    const int gpus = std::min(one.gpus, free.free_gpus), cpus = std::clamp(free.free_cpus, 0, one.cpus);
    const int64_t mem = std::clamp<int64_t>(free.free_mem, 0, one.mem);
    const uint64_t taken = NodeTable::Lowest(free.free, gpus);
    const auto share =
        std::find_if(job.shares.begin(), job.shares.end(), [&](const GpuShare& s) { return s.node == node; });
    share->gpus |= taken;
    one.gpus -= gpus, one.cpus -= cpus, one.mem -= mem;
    nodes_.Take(node, taken, cpus, mem);
    if (one.whole()) --job.owed_nodes;
  }
  std::erase_if(owed, [](const Owed& one) { return one.whole(); });
}

// The job is wanted no longer, or its nodes are away: what it has got so far is given back.
void PooledScheduler::DropClaim(JobRef ref) {
  Job& job = jobs_[ref];
  const Need& need = job.told.need;
  std::erase(claims_, ref);
  ++version_;
  Charge(job, -1, &Budget::claimed);
  for (const GpuShare& share : job.shares) {
    std::vector<Owed>& owed = uses_[static_cast<size_t>(share.node)].owed;
    const auto open = std::find_if(owed.begin(), owed.end(), [&](const Owed& one) { return one.job == ref; });
    const Owed missing = open == owed.end() ? Owed{} : *open;
    if (open != owed.end()) owed.erase(open);
    Touch(share.node);
    nodes_.Give(share.node, share.gpus, need.cpus - missing.cpus, need.mem_mb - missing.mem);
    if (!owed.empty()) FeedClaims(share.node);
  }
  job.shares.clear();
  job.owed_nodes = 0;
  job.partition = -1;
}

// Claims that are whole start, unless a victim elsewhere still counts against the same cap. Nobody takes
// there what an older claim waits for.
void PooledScheduler::StartReady(int64_t now_s) {
  if (claims_.empty()) return;
  std::vector<JobRef> waiting;
  std::unordered_map<const Budget*, int> kept;  // for those that wait
  for (const JobRef ref : claims_) {
    Job& job = jobs_[ref];
    std::vector<const Budget*> budgets;
    for (const Check& check : ChecksOf(job.told.account, job.partition))
      budgets.push_back(&budgets_[check.budget]);
    const Budget* of_type = TypeBudget(job, job.partition, nodes_[job.shares.front().node].type);
    if (of_type != nullptr) budgets.push_back(of_type);
    const bool within = std::all_of(budgets.begin(), budgets.end(), [&](const Budget* budget) {
      return budget->running + kept[budget] + AmountOf(job.told.need, budget->unit) <= budget->limit;
    });
    if (job.owed_nodes > 0 || !within) {
      for (const Budget* budget : budgets) kept[budget] += AmountOf(job.told.need, budget->unit);
      waiting.push_back(ref);
      continue;
    }
    Charge(job, -1, &Budget::claimed);
    Begin(ref, now_s);
    actions_.push_back({Action::Kind::kStart, ref, job.told.key, job.partition, job.shares, 0});
  }
  claims_ = std::move(waiting);
}

void PooledScheduler::SetNodeUp(int node, bool up) {
  nodes_.SetUp(node, up);
  Touch(node);
  ++version_;
  if (up) return;
  std::vector<JobRef> claims;
  for (const JobRef ref : claims_) {
    const std::vector<GpuShare>& shares = jobs_[ref].shares;
    if (std::any_of(shares.begin(), shares.end(), [&](const GpuShare& share) { return share.node == node; }))
      claims.push_back(ref);
  }
  for (const JobRef ref : claims) {
    DropClaim(ref);
    PutInLines(ref);
  }
}

}  // namespace overcap::pooled
