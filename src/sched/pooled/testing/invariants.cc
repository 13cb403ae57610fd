// SPDX-License-Identifier: Apache-2.0
#include "sched/pooled/testing/invariants.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/text.h"

namespace overcap::pooled {
namespace {

using State = PooledScheduler::State;
using Job = PooledScheduler::Job;

bool Runs(const Job& job) {
  return job.state == State::kRunning || job.state == State::kLeaving;
}

bool HasShares(const Job& job) {
  return Runs(job) || job.state == State::kClaiming;
}

// What a budget's owner uses, counted from the jobs.
int64_t UsedOf(const PooledScheduler& scheduler, const Budget& budget, bool with_claims) {
  int64_t used = 0;
  for (const Job& job : scheduler.jobs()) {
    if (!Runs(job) && !(with_claims && job.state == State::kClaiming)) continue;
    const PartitionRule& partition = scheduler.rules().partitions[static_cast<size_t>(job.partition)];
    const bool counts =
        budget.lab >= 0
            ? partition.counts && job.lab == budget.lab &&
                  (budget.type < 0 || scheduler.nodes()[job.shares.front().node].type == budget.type)
        : budget.account >= 0 ? partition.counts && !partition.yields && job.told.account == budget.account
                              : job.partition == budget.partition && job.user == budget.user;
    if (counts) used += AmountOf(job.told.need, budget.unit);
  }
  return used;
}

struct FreeNode {
  int gpus = 0, cpus = 0;
  int64_t mem = 0;
};

// Free on every node, with what `also` would give back.
template <typename Also>
std::vector<FreeNode> FreeNodes(const PooledScheduler& scheduler, const Also& also) {
  std::vector<FreeNode> free;
  for (int node = 0; node < scheduler.nodes().size(); ++node) {
    const NodeTable::Node& one = scheduler.nodes()[node];
    free.push_back({one.free_gpus, one.free_cpus, one.free_mem});
  }
  for (const Job& job : scheduler.jobs()) {
    if (!Runs(job) || !also(job)) continue;
    for (const GpuShare& share : job.shares) {
      FreeNode& node = free[static_cast<size_t>(share.node)];
      node.gpus += job.told.need.gpus, node.cpus += job.told.need.cpus, node.mem += job.told.need.mem_mb;
    }
  }
  return free;
}

bool Fits(const PooledScheduler& scheduler, const std::vector<FreeNode>& free, const Job& job, int partition,
          int64_t now_s) {
  const Need& need = job.told.need;
  const int64_t limit_s =
      RoundedLimit(LimitIn(scheduler.rules().partitions[static_cast<size_t>(partition)], job.told.limit_s));
  std::map<int, int> of_type;
  for (int node = 0; node < scheduler.nodes().size(); ++node) {
    const NodeTable::Node& one = scheduler.nodes()[node];
    const FreeNode& has = free[static_cast<size_t>(node)];
    if (!one.up || has.gpus < need.gpus || has.cpus < need.cpus || has.mem < need.mem_mb) continue;
    if (need.gpus > 0 && (one.type == scheduler.nodes().types() || (need.types & Bit(one.type)) == 0))
      continue;
    if ((scheduler.rules().nodes[static_cast<size_t>(node)].partitions & Bit(partition)) == 0) continue;
    if (!scheduler.IsOpen(node, now_s, now_s + std::min(limit_s, kForever))) continue;
    if (++of_type[one.type] >= need.nodes) return true;
  }
  return false;
}

}  // namespace

// No GPU twice, nothing given that is not there, and what is said to be free is what nobody has.
std::string Invariants::Nodes(const PooledScheduler& scheduler) const {
  const auto size = static_cast<size_t>(scheduler.nodes().size());
  std::vector<uint64_t> given(size, 0);
  std::vector<int64_t> cpus(size, 0), mem(size, 0);
  for (const Job& job : scheduler.jobs()) {
    if (!HasShares(job)) continue;
    std::set<int> on;
    for (const GpuShare& share : job.shares) {
      const auto node = static_cast<size_t>(share.node);
      if (!on.insert(share.node).second) return StrCat("job ", job.told.key, " has node ", node, " twice");
      if ((given[node] & share.gpus) != 0) return StrCat("a GPU of node ", node, " is given twice");
      given[node] |= share.gpus;
      if (!Runs(job)) continue;
      cpus[node] += job.told.need.cpus, mem[node] += job.told.need.mem_mb;
      if (__builtin_popcountll(share.gpus) != job.told.need.gpus)
        return StrCat("job ", job.told.key, " has too few GPUs");
    }
    if (Runs(job) && static_cast<int>(job.shares.size()) != job.told.need.nodes)
      return StrCat("job ", job.told.key, " runs on ", job.shares.size(), " nodes");
  }
  for (size_t node = 0; node < size; ++node) {
    const NodeTable::Node& one = scheduler.nodes()[static_cast<int>(node)];
    if ((given[node] & one.free) != 0) return StrCat("a GPU of node ", node, " is free and given");
    const uint64_t all = one.gpus == 64 ? ~uint64_t{0} : Bit(one.gpus) - 1;
    if ((given[node] | one.free) != all)
      return StrCat("a GPU of node ", node, " is lost, or was never there");
    if (cpus[node] > one.cpus || mem[node] > one.mem)
      return StrCat("node ", node, " has given more than it has");
    if (one.free_cpus < 0 || one.free_mem < 0) return StrCat("node ", node, " owes CPUs or memory");
  }
  return "";
}

// What a lab has in partitions that count, of all types or of one, by the rules alone.
std::string CapsByRule(const PooledScheduler& scheduler) {
  const Rules& rules = scheduler.rules();
  const auto types = static_cast<size_t>(scheduler.nodes().types()) + 1;
  std::vector<std::vector<int64_t>> gpus(rules.labs.size(), std::vector<int64_t>(types, 0));
  std::vector<int64_t> cpus(rules.labs.size(), 0);
  for (const Job& job : scheduler.jobs()) {
    if (!Runs(job) || !rules.partitions[static_cast<size_t>(job.partition)].counts) continue;
    const auto lab = static_cast<size_t>(job.lab);
    for (const GpuShare& share : job.shares) {
      gpus[lab][static_cast<size_t>(scheduler.nodes()[share.node].type)] += __builtin_popcountll(share.gpus);
      cpus[lab] += job.told.need.cpus;
    }
  }
  for (size_t lab = 0; lab < rules.labs.size(); ++lab) {
    const LabRule& rule = rules.labs[lab];
    int64_t all = 0;
    for (size_t type = 0; type < types; ++type) {
      all += gpus[lab][type];
      if (type < rule.type_caps.size() && gpus[lab][type] > rule.type_caps[type])
        return StrCat("lab ", rule.name, " has ", gpus[lab][type], " GPUs of type ", type, ", its cap is ",
                      rule.type_caps[type]);
    }
    if (all > rule.gpu_cap)
      return StrCat("lab ", rule.name, " has ", all, " GPUs, its cap is ", rule.gpu_cap);
    if (cpus[lab] > rule.cpu_cap)
      return StrCat("lab ", rule.name, " has ", cpus[lab], " CPUs, its cap is ", rule.cpu_cap);
  }
  return "";
}

std::string Invariants::Caps(const PooledScheduler& scheduler) const {
  if (std::string wrong = CapsByRule(scheduler); !wrong.empty()) return wrong;
  std::set<uint32_t> seen;
  for (const Job& job : scheduler.jobs()) {
    if (!Runs(job)) continue;
    for (const Check& check : scheduler.ChecksOf(job.told.account, job.partition)) {
      if (!seen.insert(check.budget).second) continue;
      const Budget& budget = scheduler.budget(check.budget);
      const int64_t used = UsedOf(scheduler, budget, false);
      if (used > budget.limit) return StrCat("budget ", check.budget, ": ", used, " of ", budget.limit);
      if (used != budget.running)
        return StrCat("budget ", check.budget, " counts ", budget.running, ", it is ", used);
    }
  }
  return "";
}

// Nobody is stopped within the quantum, by somebody who may not, or in vain.
std::string Invariants::Victims(const PooledScheduler& scheduler, const std::vector<Action>& actions,
                                int64_t now_s) const {
  for (const Action& action : actions) {
    const Job& job = scheduler.job(action.job);
    if (action.kind == Action::Kind::kStart) continue;
    const Job& by = scheduler.job(action.by);
    if (job.state != State::kLeaving) return StrCat("victim ", action.key, " is not leaving");
    if (scheduler.QuantumEnd(job) > now_s)
      return StrCat("job ", action.key, " is stopped within its quantum");
    if (by.state != State::kClaiming) return StrCat("job ", by.told.key, " stops others and claims nothing");
    if (!scheduler.MayPreempt(by.partition, by.lab, job))
      return StrCat("job ", by.told.key, " may not stop ", action.key);
    const bool shares_node = std::any_of(job.shares.begin(), job.shares.end(), [&](const GpuShare& share) {
      return std::any_of(by.shares.begin(), by.shares.end(),
                         [&](const GpuShare& own) { return own.node == share.node; });
    });
    const bool shares_cap =
        by.lab == job.lab && scheduler.rules().partitions[static_cast<size_t>(job.partition)].counts;
    if (!shares_node && !shares_cap) return StrCat("victim ", action.key, " does not help");
  }
  return "";
}

// Who claims waits no longer than the grace of those that were told to go.
std::string Invariants::Claims(const PooledScheduler& scheduler, int64_t now_s) const {
  int64_t longest_s = 0;
  for (const PartitionRule& rule : scheduler.rules().partitions)
    longest_s = std::max(longest_s, rule.grace_s);
  for (const Job& job : scheduler.jobs()) {
    if (job.state == State::kClaiming && now_s - job.started_s > longest_s)
      return StrCat("job ", job.told.key, " waits for its victims too long");
  }
  return "";
}

// The queue in its order: the first of it has no excuse. Behind a job that waits for nodes or for a cap, one
// that is short enough to be gone in time has none either.
std::string Invariants::Idle(const PooledScheduler& scheduler, int64_t now_s) const {
  struct Entry {
    int priority;
    double score;
    int64_t submit_s;
    uint64_t seq;
    const Job* job;
    int partition;
  };
  std::vector<Entry> queue;
  for (JobRef ref = 0; ref < scheduler.jobs().size(); ++ref) {
    const Job& job = scheduler.job(ref);
    if (job.state != State::kQueued) continue;
    for (uint64_t left = job.told.partitions; left != 0; left &= left - 1) {
      const int partition = __builtin_ctzll(left);
      queue.push_back({scheduler.rules().partitions[static_cast<size_t>(partition)].priority,
                       scheduler.ScoreOf(ref), job.told.submit_s, job.told.seq, &job, partition});
    }
  }
  std::sort(queue.begin(), queue.end(), [](const Entry& a, const Entry& b) {
    return std::tuple(-a.priority, -a.score, a.submit_s, a.seq) <
           std::tuple(-b.priority, -b.score, b.submit_s, b.seq);
  });
  const std::vector<FreeNode> free = FreeNodes(scheduler, [](const Job&) { return false; });
  std::set<uint32_t> held;
  bool someone_waits = !scheduler.holds().empty();
  int64_t hold_s = kForever;
  for (const PooledScheduler::Hold& hold : scheduler.holds()) hold_s = std::min(hold_s, hold.from_s);
  for (const Entry& entry : queue) {
    const auto& checks = scheduler.ChecksOf(entry.job->told.account, entry.partition);
    bool within = true, behind = false;
    for (const Check& check : checks) {
      const Budget& budget = scheduler.budget(check.budget);
      for (const PooledScheduler::Hold& hold : scheduler.holds()) behind = behind || budget.first == hold.job;
      behind = behind || held.count(check.budget) > 0;
      if (UsedOf(scheduler, budget, true) + AmountOf(entry.job->told.need, check.unit) <= budget.limit)
        continue;
      within = false;
      held.insert(check.budget);
    }
    if (!within) continue;
    const bool typed = !scheduler.rules().labs[static_cast<size_t>(entry.job->lab)].type_caps.empty();
    if (behind || typed) {  // it may have nodes kept for it
      someone_waits = true;
      continue;
    }
    const int64_t limit_s = RoundedLimit(
        LimitIn(scheduler.rules().partitions[static_cast<size_t>(entry.partition)], entry.job->told.limit_s));
    const bool in_time = now_s + limit_s <= hold_s;
    if (someone_waits && !in_time) continue;
    if (Fits(scheduler, free, *entry.job, entry.partition, now_s))
      return StrCat("job ", entry.job->told.key, " fits in partition ", entry.partition, " and waits");
    if (!someone_waits) {
      const auto victims = FreeNodes(scheduler, [&](const Job& run) {
        return run.state == State::kRunning && scheduler.MayPreempt(entry.partition, entry.job->lab, run) &&
               scheduler.QuantumEnd(run) <= now_s;
      });
      if (Fits(scheduler, victims, *entry.job, entry.partition, now_s))
        return StrCat("job ", entry.job->told.key, " is within its cap and waits for somebody who borrows");
    }
    someone_waits = true;
  }
  return "";
}

std::string Invariants::Look(const PooledScheduler& scheduler, const std::vector<Action>& actions,
                             int64_t now_s) const {
  std::string wrong = Nodes(scheduler);
  if (wrong.empty()) wrong = Caps(scheduler);
  if (wrong.empty()) wrong = Victims(scheduler, actions, now_s);
  if (wrong.empty()) wrong = Claims(scheduler, now_s);
  if (wrong.empty()) wrong = Idle(scheduler, now_s);
  return wrong;
}

}  // namespace overcap::pooled
