// SPDX-License-Identifier: Apache-2.0
// Why a job waits under a policy, in a line.
#include <algorithm>

#include "base/text.h"
#include "base/units.h"
#include "daemon/policy_queue.h"

namespace overcap {
namespace {

constexpr size_t kMostNamed = 8;

using State = pooled::PooledScheduler::State;

// The first limit that keeps it from starting in a partition; "": none does.
std::string FullLimit(const pooled::PooledScheduler& scheduler, const pooled::PooledScheduler::Job& job,
                      int partition, const pooled::LiveAccount& account) {
  for (const pooled::Check& check : scheduler.ChecksOf(job.told.account, partition)) {
    const pooled::Budget& budget = scheduler.budget(check.budget);
    if (budget.Allows(pooled::AmountOf(job.told.need, check.unit))) continue;
    const std::string whose = budget.lab >= 0 ? StrCat("lab ", Quoted(account.lab), " uses ")
                              : budget.account >= 0
                                  ? StrCat(account.user, " of lab ", Quoted(account.lab), " uses ")
                                  : StrCat(account.user, " uses ");
    const std::string what = check.unit == pooled::Unit::kGpus   ? "GPUs"
                             : check.unit == pooled::Unit::kCpus ? "CPUs"
                                                                 : "jobs";
    return StrCat(whose, budget.running + budget.claimed, " of ", budget.limit, " ", what);
  }
  return "";
}

// Who was told to go for a job, and when they are stopped at the latest: "dana's 4 GPUs in overcap go within
// 1m30s".
std::string Leaving(const JobTable& table, const std::string& id, int64_t now_us) {
  std::vector<std::string> who;
  int64_t stop_us = 0;
  for (const auto& [key, job] : table.jobs()) {
    for (const Slot& slot : job->slots) {
      if (!slot.preemption || slot.preemption->by != id) continue;
      who.push_back(StrCat(job->spec.user, "'s ",
                           slot.gpus.empty() ? CountOf(static_cast<int64_t>(slot.cpus.size()), "CPU")
                                             : CountOf(static_cast<int64_t>(slot.gpus.size()), "GPU"),
                           " in ", slot.partition));
      stop_us = std::max(stop_us, slot.preemption->stop_us);
    }
  }
  if (who.empty()) return "others were told to go";
  if (who.size() > kMostNamed) {
    const size_t more = who.size() - kMostNamed;
    who.resize(kMostNamed);
    who.push_back(StrCat(more, " more"));
  }
  const int64_t left_s = (stop_us - now_us + 999'999) / 1'000'000;
  return StrCat(Join(who, ", "),
                left_s > 0 ? StrCat(" go within ", FormatDuration(left_s)) : " are being stopped");
}

// What it needs is closed for as long as it may run: "maintenance 'power' begins in 3h, its time limit is
// 2d".
std::string Closed(const pooled::MachinePool& pool, int64_t limit_s, int64_t now_us) {
  for (const PolicyMaintenance& one : pool.policy().maintenance) {
    const auto& here = pool.policy().nodes.front().names;
    const bool ours = one.nodes.empty() || std::ranges::find(one.nodes, here.front()) != one.nodes.end();
    if (!ours || one.end_us <= now_us || one.start_us >= now_us + limit_s * 1'000'000) continue;
    const std::string name = StrCat("maintenance ", Quoted(one.name));
    if (one.start_us <= now_us)
      return StrCat(name, " ends in ",
                    FormatDuration(std::max<int64_t>(1, (one.end_us - now_us) / 1'000'000)));
    return StrCat(name, " begins in ",
                  FormatDuration(std::max<int64_t>(1, (one.start_us - now_us) / 1'000'000)),
                  limit_s < pooled::kForever ? StrCat(", its time limit is ", FormatDuration(limit_s))
                                             : ", it has no time limit");
  }
  return "";
}

int JobsAhead(const pooled::PooledScheduler& scheduler, pooled::JobRef ref, int partition) {
  const pooled::PooledScheduler::Job& own = scheduler.job(ref);
  const double score = scheduler.ScoreOf(ref);
  int ahead = 0;
  for (pooled::JobRef other = 0; other < scheduler.jobs().size(); ++other) {
    const pooled::PooledScheduler::Job& job = scheduler.job(other);
    if (job.state != State::kQueued || (job.told.partitions & pooled::Bit(partition)) == 0 || other == ref)
      continue;
    const double theirs = scheduler.ScoreOf(other);
    ahead += theirs > score || (theirs == score && std::pair(job.told.submit_s, job.told.seq) <
                                                       std::pair(own.told.submit_s, own.told.seq));
  }
  return ahead;
}

}  // namespace

std::string PolicyQueue::Explain(uint64_t key, int64_t now_us) const {
  const auto found = waiting_.find(key);
  if (found == waiting_.end() || found->second.wanted <= 0) return "";
  if (!found->second.refused.empty()) return found->second.refused;
  if (!found->second.ref) return "";
  const pooled::PooledScheduler::Job& job = scheduler_.job(*found->second.ref);
  const pooled::LiveAccount& account = pool_.accounts()[static_cast<size_t>(job.told.account)];
  if (job.state == State::kClaiming)
    return StrCat("its place in ", pool_.rules().partitions[static_cast<size_t>(job.partition)].name,
                  " is being made free: ", Leaving(table_, table_.FindKey(key)->spec.id, now_us));
  std::vector<std::string> parts;
  for (int partition = 0; partition < static_cast<int>(pool_.rules().partitions.size()); ++partition) {
    if ((job.told.partitions & pooled::Bit(partition)) == 0) continue;
    const std::string full = FullLimit(scheduler_, job, partition, account);
    const int ahead = JobsAhead(scheduler_, *found->second.ref, partition);
    const auto& rule = pool_.rules().partitions[static_cast<size_t>(partition)];
    const std::string closed =
        Closed(pool_, std::min(pooled::LimitIn(rule, job.told.limit_s), pooled::kForever), now_us);
    std::string text =
        !full.empty()     ? full
        : !closed.empty() ? closed
                          : StrCat("waits for ", job.told.need.gpus > 0 ? CountOf(job.told.need.gpus, "GPU")
                                                                        : CountOf(job.told.need.cpus, "CPU"));
    if (ahead > 0) text += StrCat("; ", CountOf(ahead, "job"), " ahead");
    parts.push_back(StrCat(rule.name, ": ", text));
  }
  return Join(parts, "; ");
}

}  // namespace overcap
