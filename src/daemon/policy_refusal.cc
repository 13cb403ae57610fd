// SPDX-License-Identifier: Apache-2.0
// Why the policy never lets a job start, with the limit that stands against it.
#include <algorithm>

#include "base/text.h"
#include "base/units.h"
#include "daemon/policy_queue.h"

namespace overcap {
namespace {

std::string WordsOf(const pooled::Budget& budget, const pooled::MachinePool& pool,
                    const pooled::LiveAccount& account) {
  const std::string lab = StrCat("lab ", Quoted(account.lab));
  if (budget.type >= 0)
    return StrCat(lab, " may have ", budget.limit, " of type ",
                  Quoted(pool.rules().types[static_cast<size_t>(budget.type)]));
  if (budget.lab >= 0) return StrCat(lab, " may have ", budget.limit);
  const std::string user = StrCat("user ", Quoted(account.user));
  if (budget.partition >= 0)
    return StrCat(user, " may have ", budget.limit, " at once in partition ",
                  Quoted(pool.rules().partitions[static_cast<size_t>(budget.partition)].name));
  return StrCat(user, " of ", lab, " may have ", budget.limit, " at once");
}

std::string AmountText(const pooled::Need& need, pooled::Unit unit) {
  const int amount = pooled::AmountOf(need, unit);
  return CountOf(amount, unit == pooled::Unit::kGpus ? "GPU" : unit == pooled::Unit::kCpus ? "CPU" : "job");
}

// The first limit of a partition that it breaks by itself; "": none.
std::string LimitOf(const pooled::PoolJob& job, size_t partition, const pooled::MachinePool& pool,
                    const pooled::PooledScheduler& scheduler) {
  const pooled::PartitionRule& rule = pool.rules().partitions[partition];
  const pooled::LiveAccount& account = pool.accounts()[static_cast<size_t>(job.account)];
  if (job.need.all_gpus() > rule.gpus_per_job)
    return StrCat("asks for ", CountOf(job.need.all_gpus(), "GPU"), ", a job in partition ",
                  Quoted(rule.name), " may have ", rule.gpus_per_job);
  for (const pooled::Check& check : scheduler.ChecksOf(job.account, static_cast<int>(partition))) {
    const pooled::Budget& budget = scheduler.budget(check.budget);
    if (pooled::AmountOf(job.need, check.unit) > budget.limit)
      return StrCat("asks for ", AmountText(job.need, check.unit), ", ", WordsOf(budget, pool, account));
  }
  const PolicyLab* lab = FindPolicyLab(pool.policy(), account.lab);
  if (lab == nullptr || !rule.counts) return "";
  for (const TypedGpus& cap : lab->type_caps) {
    if (job.need.all_gpus() > cap.count)
      return StrCat("asks for ", CountOf(job.need.all_gpus(), "GPU"), ", lab ", Quoted(lab->name),
                    " may have ", cap.count, " of type ", Quoted(cap.type));
  }
  return "";
}

Error OverLimit(const pooled::PoolJob& job, const pooled::MachinePool& pool,
                const pooled::PooledScheduler& scheduler) {
  for (size_t i = 0; i < pool.rules().partitions.size(); ++i) {
    if ((job.partitions & pooled::Bit(static_cast<int>(i))) == 0) continue;
    const std::string limit = LimitOf(job, i, pool, scheduler);
    if (!limit.empty())
      return {ErrorCode::kUsage, limit, "`overcap usage -l` shows the caps; -p overcap is not held by them"};
  }
  return {ErrorCode::kUsage, "asks for more than a cap or limit allows", "`overcap usage -l` shows the caps"};
}

Error TooLong(const pooled::PoolJob& job, const pooled::MachinePool& pool) {
  std::vector<std::string> allowed;
  for (size_t i = 0; i < pool.rules().partitions.size(); ++i) {
    const pooled::PartitionRule& rule = pool.rules().partitions[i];
    if ((job.partitions & pooled::Bit(static_cast<int>(i))) != 0 && rule.max_time_s > 0)
      allowed.push_back(StrCat("partition ", Quoted(rule.name), " allows ", FormatDuration(rule.max_time_s)));
  }
  return {ErrorCode::kUsage,
          StrCat("its time limit is ", FormatDuration(job.limit_s), ", ",
                 allowed.empty() ? std::string("its partition allows less") : Join(allowed, ", ")),
          "ask for less with --time, or name another partition with -p"};
}

}  // namespace

Error PolicyQueue::RefusalError(pooled::Refusal refusal, const pooled::PoolJob& job) const {
  switch (refusal) {
    case pooled::Refusal::kTooLarge:
      return {ErrorCode::kUsage,
              StrCat("asks for ", job.need.gpus > 0 ? CountOf(job.need.gpus, "GPU") : "",
                     job.need.gpus > 0 ? " and " : "", CountOf(job.need.cpus, "CPU"),
                     ", more than there is with one type of GPU"),
              "`overcap nodes` shows what is there"};
    case pooled::Refusal::kOverLimit:
      return OverLimit(job, pool_, scheduler_);
    case pooled::Refusal::kNoPartition:
      return TooLong(job, pool_);
    case pooled::Refusal::kNone:
      break;
  }
  return {ErrorCode::kInternal, "refused for no reason", ""};
}

}  // namespace overcap
