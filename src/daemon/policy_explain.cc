// SPDX-License-Identifier: Apache-2.0
// Why a job waits under a policy, in a line.
#include <algorithm>

#include "base/text.h"
#include "daemon/policy_queue.h"

namespace overcap {
namespace {

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

std::string PolicyQueue::Explain(uint64_t key, int64_t) const {
  const auto found = waiting_.find(key);
  if (found == waiting_.end() || found->second.wanted <= 0) return "";
  if (!found->second.refused.empty()) return found->second.refused;
  if (!found->second.ref) return "";
  const pooled::PooledScheduler::Job& job = scheduler_.job(*found->second.ref);
  const pooled::LiveAccount& account = pool_.accounts()[static_cast<size_t>(job.told.account)];
  if (job.state == State::kClaiming)
    return StrCat("its place in ", pool_.rules().partitions[static_cast<size_t>(job.partition)].name,
                  " is being made free: others were told to go");
  std::vector<std::string> parts;
  for (int partition = 0; partition < static_cast<int>(pool_.rules().partitions.size()); ++partition) {
    if ((job.told.partitions & pooled::Bit(partition)) == 0) continue;
    const std::string full = FullLimit(scheduler_, job, partition, account);
    const int ahead = JobsAhead(scheduler_, *found->second.ref, partition);
    std::string text = full.empty()
                           ? StrCat("waits for ", job.told.need.gpus > 0 ? CountOf(job.told.need.gpus, "GPU")
                                                                         : CountOf(job.told.need.cpus, "CPU"))
                           : full;
    if (ahead > 0) text += StrCat("; ", CountOf(ahead, "job"), " ahead");
    parts.push_back(StrCat(pool_.rules().partitions[static_cast<size_t>(partition)].name, ": ", text));
  }
  return Join(parts, "; ");
}

}  // namespace overcap
