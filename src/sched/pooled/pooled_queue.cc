// SPDX-License-Identifier: Apache-2.0
// Accounts, and jobs that wait.
#include <algorithm>
#include <map>
#include <tuple>

#include "sched/pooled/pooled_scheduler.h"

namespace overcap::pooled {

PooledScheduler::PooledScheduler(Rules rules)
    : rules_(std::move(rules)), nodes_(rules_), shares_(rules_), uses_(rules_.nodes.size()) {
  const size_t partitions = rules_.partitions.size();
  run_gpus_.resize(rules_.nodes.size() * partitions);
  all_run_.resize(partitions);
  tier_of_.resize(partitions);
  user_limits_.resize(partitions);
  lab_runs_.resize(rules_.labs.size());
  lab_counts_.resize(rules_.labs.size() * partitions);
  lab_check_kinds_.resize(rules_.labs.size() * partitions, ~uint32_t{0});
  for (const PartitionRule& rule : rules_.partitions) preempted_ |= rule.preempts | rule.preempts_in_lab;
  for (size_t lab = 0; lab < rules_.labs.size(); ++lab) {
    const LabRule& rule = rules_.labs[lab];
    lab_gpus_.push_back(NewBudget(rule.gpu_cap, Unit::kGpus));
    lab_cpus_.push_back(NewBudget(rule.cpu_cap, Unit::kCpus));
    lab_types_.emplace_back();
    for (size_t type = 0; type < rule.type_caps.size(); ++type) {
      lab_types_.back().push_back(NewBudget(rule.type_caps[type], Unit::kGpus));
      budgets_.back().type = static_cast<int>(type);
    }
    for (uint32_t at = lab_gpus_.back(); at < budgets_.size(); ++at) budgets_[at].lab = static_cast<int>(lab);
  }
  std::vector<int> order;
  for (size_t i = 0; i < partitions; ++i) order.push_back(static_cast<int>(i));
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return PartitionAt(a).priority > PartitionAt(b).priority; });
  for (const int partition : order) {
    if (tiers_.empty() || tiers_.back().priority != PartitionAt(partition).priority)
      tiers_.push_back({PartitionAt(partition).priority, 0, {}, {}, {}});
    tiers_.back().partitions |= Bit(partition);
    if (PartitionAt(partition).counts) counting_ |= Bit(partition);
    tier_of_[static_cast<size_t>(partition)] = tiers_.size() - 1;
  }
  const uint64_t all = partitions == 64 ? ~uint64_t{0} : Bit(static_cast<int>(partitions)) - 1;
  for (const NodeRule& node : rules_.nodes) {
    pool_gpus_ += node.type < 0 ? 0 : node.gpus;
    if (!node.closed.empty() || (node.partitions & all) != all) plain_nodes_ = false;
    for (const ClosedTime& time : node.closed) openings_.push_back(time.until_s);
  }
  std::sort(openings_.begin(), openings_.end());
  ShapeNodes();
}

// Nodes that are alike, counted: what fits on them when they are empty is found without looking at each.
void PooledScheduler::ShapeNodes() {
  std::map<std::tuple<int, int, int, int64_t, uint64_t>, int> counts;
  for (int node = 0; node < nodes_.size(); ++node) {
    const NodeTable::Node& one = nodes_[node];
    ++counts[{one.type, one.gpus, one.cpus, one.mem, rules_.nodes[static_cast<size_t>(node)].partitions}];
  }
  for (const auto& [key, count] : counts)
    shapes_.push_back(
        {std::get<0>(key), std::get<1>(key), std::get<2>(key), std::get<3>(key), std::get<4>(key), count});
}

uint32_t PooledScheduler::NewBudget(int limit, Unit unit) {
  Budget budget;
  budget.limit = limit;
  budget.unit = unit;
  budgets_.push_back(budget);
  return static_cast<uint32_t>(budgets_.size() - 1);
}

int PooledScheduler::AddAccount(const AccountRule& rule) {
  const int account = shares_.AddAccount(rule.lab);
  share_points_.push_back(PointsOf(shares_.Of(account)));
  const auto user = static_cast<size_t>(rule.user);
  accounts_.push_back({rule.lab, rule.user, static_cast<uint32_t>(budgets_.size()), rule.partitions});
  const auto add = [&](int limit, Unit unit) { budgets_[NewBudget(limit, unit)].account = account; };
  add(rule.limits.gpus, Unit::kGpus), add(rule.limits.cpus, Unit::kCpus), add(rule.limits.jobs, Unit::kJobs);
  for (size_t partition = 0; partition < rules_.partitions.size(); ++partition) {
    const PartitionRule& in = rules_.partitions[partition];
    std::vector<uint32_t>& limits = user_limits_[partition];
    if (limits.size() <= user) limits.resize(user + 1, ~uint32_t{0});
    if (limits[user] == ~uint32_t{0}) {
      limits[user] = NewBudget(in.per_user.gpus, Unit::kGpus);
      NewBudget(in.per_user.cpus, Unit::kCpus);
      NewBudget(in.per_user.jobs, Unit::kJobs);
      for (uint32_t at = limits[user]; at < limits[user] + 3; ++at) {
        budgets_[at].partition = static_cast<int>(partition);
        budgets_[at].user = rule.user;
      }
    }
    std::vector<Check>& checks = checks_.emplace_back();
    const auto check = [&](uint32_t at) {
      if (budgets_[at].limit < kNoLimit) checks.push_back({at, budgets_[at].unit});
    };
    const auto lab = static_cast<size_t>(rule.lab);
    if (in.counts) check(lab_gpus_[lab]), check(lab_cpus_[lab]);
    for (uint32_t i = 0; i < 3; ++i) {
      if (in.counts && !in.yields) check(accounts_.back().limits + i);
      check(limits[user] + i);
    }
    check_kinds_.push_back(CheckKindOf(rule.lab, static_cast<int>(partition)));
  }
  if (user_labs_.size() <= user) user_labs_.resize(user + 1);
  if (std::find(user_labs_[user].begin(), user_labs_[user].end(), rule.lab) == user_labs_[user].end())
    user_labs_[user].push_back(rule.lab);
  return account;
}

// ---- what a job asks for

// Types of which there are enough nodes in the partition that could hold it.
uint64_t PooledScheduler::TypesThatFit(const Need& need, int partition) const {
  uint64_t types = 0;
  for (int type = 0; type <= nodes_.types(); ++type) {
    if (need.gpus > 0 && (type == nodes_.types() || (need.types & Bit(type)) == 0)) continue;
    int fitting = 0;
    for (const NodeShape& shape : shapes_) {
      if (shape.type == type && shape.gpus >= need.gpus && shape.cpus >= need.cpus &&
          shape.mem >= need.mem_mb && (shape.partitions & Bit(partition)) != 0)
        fitting += shape.count;
    }
    if (fitting >= need.nodes) types |= Bit(type);
  }
  return types;
}

int PooledScheduler::DemandOf(const Need& need) {
  const auto hash_of = [](const Need& one) {
    uint64_t hash = MixedHash(static_cast<uint64_t>(one.nodes), static_cast<uint64_t>(one.gpus));
    hash = MixedHash(hash, static_cast<uint64_t>(one.cpus));
    return MixedHash(MixedHash(hash, static_cast<uint64_t>(one.mem_mb)), one.types);
  };
  const uint64_t hash = hash_of(need);
  const uint32_t found = demand_index_.Find(hash, [&](uint32_t at) { return demands_[at].need == need; });
  if (found != FlatIndex::kNone) return static_cast<int>(found);
  Demand demand{need, std::vector<Demand::InPartition>(rules_.partitions.size())};
  for (size_t partition = 0; partition < demand.in.size(); ++partition)
    demand.in[partition].types = TypesThatFit(need, static_cast<int>(partition));
  demand_index_.Add(hash, static_cast<uint32_t>(demands_.size()),
                    [&](uint32_t at) { return hash_of(demands_[at].need); });
  demands_.push_back(std::move(demand));
  cpu_jobs_ = cpu_jobs_ || need.gpus == 0;
  return static_cast<int>(demands_.size()) - 1;
}

// The partitions of a job that can ever take it.
uint64_t PooledScheduler::Allowed(const PoolJob& job, int demand, Refusal* why) const {
  const Account& account = accounts_[static_cast<size_t>(job.account)];
  const std::vector<uint32_t>& caps = lab_types_[static_cast<size_t>(account.lab)];
  uint64_t allowed = 0;
  *why = Refusal::kNoPartition;
  for (size_t i = 0; i < rules_.partitions.size(); ++i) {
    const auto partition = static_cast<int>(i);
    const PartitionRule& rule = rules_.partitions[i];
    if ((job.partitions & account.partitions & Bit(partition)) == 0 || !MayUse(rule, account.lab) ||
        LimitIn(rule, job.limit_s) == 0)
      continue;
    if (job.need.all_gpus() > rule.gpus_per_job || job.need.nodes > rule.nodes_per_job) {
      *why = std::max(*why, Refusal::kOverLimit);
      continue;
    }
    uint64_t types = demands_[static_cast<size_t>(demand)].in[i].types;
    if (types == 0) {
      *why = std::max(*why, Refusal::kTooLarge);
      continue;
    }
    for (size_t type = 0; rule.counts && job.need.gpus > 0 && type < caps.size(); ++type) {
      if (budgets_[caps[type]].limit < job.need.all_gpus()) types &= ~Bit(static_cast<int>(type));
    }
    const std::vector<Check>& checks = ChecksOf(job.account, partition);
    const bool within = std::all_of(checks.begin(), checks.end(), [&](const Check& check) {
      return AmountOf(job.need, check.unit) <= budgets_[check.budget].limit;
    });
    if (types == 0 || !within) {
      *why = std::max(*why, Refusal::kOverLimit);
      continue;
    }
    allowed |= Bit(partition);
  }
  if (allowed != 0) *why = Refusal::kNone;
  return allowed;
}

// ---- jobs

JobRef PooledScheduler::NewJob(const PoolJob& told) {
  JobRef ref = static_cast<JobRef>(jobs_.size());
  if (free_refs_.empty()) {
    jobs_.emplace_back();
  } else {
    ref = free_refs_.back();
    free_refs_.pop_back();
  }
  Job& job = jobs_[ref];
  job = {};
  job.told = told;
  job.lab = accounts_[static_cast<size_t>(told.account)].lab;
  job.user = accounts_[static_cast<size_t>(told.account)].user;
  job.demand = DemandOf(told.need);
  return ref;
}

Refusal PooledScheduler::Submit(const PoolJob& job, JobRef* ref) {
  PoolJob told = job;
  if (told.need.gpus == 0) told.need.cpus = std::max(1, told.need.cpus);
  Refusal why = Refusal::kNone;
  const uint64_t allowed = Allowed(told, DemandOf(told.need), &why);
  if (allowed == 0) return why;
  *ref = NewJob(told);
  jobs_[*ref].told.partitions = allowed;
  PutInLines(*ref);
  return Refusal::kNone;
}

void PooledScheduler::Ended(JobRef ref, int64_t now_s) {
  Job& job = jobs_[ref];
  if (job.state == State::kGone) return;
  if (job.state == State::kQueued) {
    TakeOutOfLines(ref);
  } else if (job.state == State::kClaiming) {
    DropClaim(ref);
  } else {
    Leave(ref, now_s);
  }
  job.state = State::kGone;
  job.shares = {};
  free_refs_.push_back(ref);
}

void PooledScheduler::Requeue(JobRef ref, int64_t now_s) {
  if (jobs_[ref].state != State::kRunning && jobs_[ref].state != State::kLeaving) return;
  Leave(ref, now_s);
  PutInLines(ref);
}

void PooledScheduler::AddUse(int account, double gpu_seconds, int64_t at_s) {
  shares_.AddUse(account, gpu_seconds, at_s);
}

void PooledScheduler::Checkpointed(JobRef ref, int64_t at_s) {
  jobs_[ref].checkpoint_s = std::max(jobs_[ref].checkpoint_s, at_s);
}

}  // namespace overcap::pooled
