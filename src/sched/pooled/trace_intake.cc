// SPDX-License-Identifier: Apache-2.0
#include "sched/pooled/trace_intake.h"

#include <algorithm>

#include "base/text.h"
#include "sched/pooled/job_defaults.h"
#include "sched/pooled/rules_of.h"

namespace overcap::pooled {
namespace {

// A number that looks random and follows from both (splitmix64).
uint64_t Mixed(uint64_t seed, uint64_t value) {
  uint64_t x = seed * 0x9e3779b97f4a7c15 + value + 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

std::string TypeMissing(const std::string& type) {
  return type.empty() ? "asks for GPUs, and the policy has no node with any"
                      : StrCat("no GPUs of type ", Quoted(type));
}

}  // namespace

TraceIntake::TraceIntake(const Policy& policy, const Trace& trace, const ReplayOptions& options,
                         PooledScheduler* scheduler, Replayed* replayed)
    : policy_(policy), trace_(trace), options_(options), scheduler_(scheduler), replayed_(replayed) {
  for (const std::string& name : trace.users.all()) replayed->users.push_back(name.empty() ? "-" : name);
}

Result<void> TraceIntake::Begin() {
  const Rules& rules = scheduler_->rules();
  cpus_per_gpu_ = kNoLimit;
  for (const NodeRule& node : rules.nodes) {
    most_gpus_ = std::max(most_gpus_, node.gpus);
    most_cpus_ = std::max(most_cpus_, node.cpus);
    if (node.gpus > 0) cpus_per_gpu_ = std::min(cpus_per_gpu_, node.cpus / node.gpus);
  }
  if (cpus_per_gpu_ == kNoLimit) cpus_per_gpu_ = 0;
  size_t known = 0;
  for (const std::string& name : trace_.labs.all()) {
    const auto found = std::find_if(rules.labs.begin(), rules.labs.end(),
                                    [&](const LabRule& lab) { return lab.name == name; });
    labs_.push_back(found == rules.labs.end() ? -1 : static_cast<int>(found - rules.labs.begin()));
    known += found != rules.labs.end();
  }
  if (known == 0 && !trace_.jobs.empty()) {
    for (size_t i = 0; i < labs_.size(); ++i)
      labs_[i] = static_cast<int>(Mixed(options_.seed, i) % rules.labs.size());
    replayed_->notes.push_back(
        "no lab of the trace is in the policy: its groups are spread over the policy's labs by --seed");
  }
  for (const std::string& type : trace_.types.all()) types_.push_back(TypesOf(rules, type));
  for (const std::string& names : trace_.partitions.all()) named_.push_back(PartitionsNamed(names));
  if (options_.partitions.empty()) return {};
  for (const std::string& name : Split(options_.partitions, ',')) {
    const uint64_t bit = PartitionsNamed(name);
    if (bit == 0) return Fail(ErrorCode::kUsage, StrCat("the policy has no partition ", Quoted(name)));
    chosen_ |= bit;
  }
  return {};
}

uint64_t TraceIntake::PartitionsNamed(const std::string& names) const {
  uint64_t bits = 0;
  for (const std::string& name : Split(names, ',')) {
    for (size_t i = 0; i < scheduler_->rules().partitions.size(); ++i) {
      if (scheduler_->rules().partitions[i].name == name) bits |= Bit(static_cast<int>(i));
    }
  }
  return bits;
}

// Those that are named; else the shortest that counts and takes the job's time, and all that do not count.
uint64_t TraceIntake::PartitionsOf(const TraceJob& job, int lab) const {
  if (chosen_ != 0) return chosen_;
  if (const uint64_t named = named_[static_cast<size_t>(job.partition)]; named != 0) return named;
  const int64_t time_s = job.limit_s > 0 ? job.limit_s : job.run_s;
  uint64_t bits = 0;
  int shortest = -1;
  int64_t shortest_s = 0;
  for (size_t i = 0; i < scheduler_->rules().partitions.size(); ++i) {
    const PartitionRule& rule = scheduler_->rules().partitions[i];
    const int64_t most_s = rule.max_time_s > 0 ? rule.max_time_s : kForever;
    if (most_s < time_s || !MayUse(rule, lab)) continue;
    if (!rule.counts) bits |= Bit(static_cast<int>(i));
    if (!rule.counts || rule.yields || rule.per_user.gpus < kNoLimit) continue;
    if (shortest >= 0 && shortest_s <= most_s) continue;
    shortest = static_cast<int>(i), shortest_s = most_s;
  }
  return shortest >= 0 ? bits | Bit(shortest) : bits;
}

// As many nodes as it needs, all with the same part.
Need TraceIntake::NeedOf(const TraceJob& job, uint64_t types) const {
  Need need;
  need.types = types;
  const bool gpus = job.gpus > 0;
  const int all = gpus ? job.gpus : job.cpus, most = gpus ? most_gpus_ : most_cpus_;
  need.nodes = std::max(job.nodes, (all + most - 1) / most);
  need.nodes = std::min(need.nodes, all);
  const int part = (all + need.nodes - 1) / need.nodes;
  need.gpus = gpus ? part : 0;
  need.cpus = gpus ? part * cpus_per_gpu_ : part;
  if (gpus && job.cpus > 0) need.cpus = std::min(need.cpus, (job.cpus + need.nodes - 1) / need.nodes);
  return need;
}

int TraceIntake::AccountAt(int lab, int32_t user) {
  const uint64_t key = static_cast<uint64_t>(lab) << 32 | static_cast<uint32_t>(user);
  const auto [found, is_new] = accounts_.try_emplace(key, 0);
  if (is_new) {
    const std::string& name = trace_.users.all()[static_cast<size_t>(user)];
    found->second = scheduler_->AddAccount(AccountOf(policy_, lab, name, user));
  }
  return found->second;
}

std::optional<PoolJob> TraceIntake::JobOf(size_t at) {
  const TraceJob& job = trace_.jobs[at];
  const auto skip = [&](const std::string& why) {
    replayed_->skips.Add(why, job.line);
    return std::nullopt;
  };
  const int lab = labs_[static_cast<size_t>(job.lab)];
  if (lab < 0) {
    const std::string& name = trace_.labs.all()[static_cast<size_t>(job.lab)];
    return skip(name.empty() ? "names no lab" : StrCat("lab ", Quoted(name), " is not in the policy"));
  }
  const uint64_t types = types_[static_cast<size_t>(job.type)];
  if (types == 0) return skip(TypeMissing(trace_.types.all()[static_cast<size_t>(job.type)]));
  PoolJob made;
  made.key = made.seq = at;
  made.account = AccountAt(lab, job.user);
  made.partitions = PartitionsOf(job, lab);
  if (made.partitions == 0) return skip("takes longer than any partition allows");
  made.need = NeedOf(job, types);
  const PartitionRule& first =
      scheduler_->rules()
          .partitions[static_cast<size_t>(FirstPartition(scheduler_->rules(), made.partitions))];
  made.need.mem_mb = made.need.gpus * first.mem_mb_per_gpu;
  if (job.cpus == 0 && first.cpus_per_gpu > 0 && made.need.gpus > 0)
    made.need.cpus = made.need.gpus * first.cpus_per_gpu;
  made.limit_s = job.limit_s;
  made.submit_s = job.submit_s;
  made.checkpoint_every_s = options_.checkpoint_s;
  replayed_->jobs[at].lab = lab;
  replayed_->jobs[at].user = job.user;
  replayed_->jobs[at].gpus = made.need.all_gpus();
  return made;
}

}  // namespace overcap::pooled
