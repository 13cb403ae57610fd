// SPDX-License-Identifier: Apache-2.0
#include "sched/pooled/machine_pool.h"

#include <algorithm>

#include "base/text.h"
#include "model/policy/lab_choice.h"
#include "sched/pooled/job_defaults.h"
#include "sched/pooled/rules_of.h"

namespace overcap::pooled {
namespace {

constexpr int64_t kMegabyte = 1 << 20;

std::vector<TypedGpus> GpusByType(const Machine& machine) {
  std::vector<TypedGpus> gpus;
  for (const Gpu& gpu : machine.gpus) {
    const std::string type = NormalPolicyGpuType(gpu.type);
    const auto known = std::ranges::find(gpus, type, &TypedGpus::type);
    if (known != gpus.end()) {
      ++known->count;
    } else {
      gpus.push_back({type, 1});
    }
  }
  std::ranges::sort(gpus, {}, &TypedGpus::type);
  return gpus;
}

std::string TextOf(std::vector<TypedGpus> gpus) {
  std::ranges::sort(gpus, {}, &TypedGpus::type);
  std::vector<std::string> words;
  for (const TypedGpus& kind : gpus) words.push_back(StrCat(kind.type, ":", kind.count));
  return words.empty() ? "no GPUs" : Join(words, ",");
}

const PolicyNodes* NodesOf(const Policy& policy, std::string_view host) {
  for (const PolicyNodes& nodes : policy.nodes) {
    if (std::ranges::find(nodes.names, host) != nodes.names.end()) return &nodes;
  }
  return nullptr;
}

// The policy with this machine as its only node.
Policy OnlyHere(Policy policy, const std::string& host, const Machine& machine) {
  PolicyNodes here = *NodesOf(policy, host);
  here.hosts = host;
  here.names = {host};
  here.gpus = GpusByType(machine);
  here.cpus = machine.cpus;
  here.mem_bytes = machine.mem_bytes;
  const int gpus = static_cast<int>(machine.gpus.size());
  here.cpus_per_gpu = gpus > 0 ? std::min(here.cpus_per_gpu, machine.cpus / gpus) : 0;
  policy.nodes = {here};
  return policy;
}

}  // namespace

Result<std::string> LabOf(const Policy& policy, const JobSpec& spec) {
  if (spec.lab.empty()) return ChooseLab(policy, spec.user, spec.placement.account);
  if (FindPolicyLab(policy, spec.lab) != nullptr) return spec.lab;
  return Fail(ErrorCode::kUsage, StrCat("the policy has no lab ", Quoted(spec.lab), " any more"));
}

Result<std::string> HostOf(const Policy& policy, const Machine& machine, bool exact) {
  std::string host = machine.host;
  if (NodesOf(policy, host) == nullptr) host = host.substr(0, host.find('.'));
  if (NodesOf(policy, host) == nullptr && NodeTotal(policy) == 1) host = policy.nodes.front().names.front();
  const PolicyNodes* nodes = NodesOf(policy, host);
  if (nodes == nullptr) {
    return Fail(ErrorCode::kUsage,
                StrCat("the policy has no node ", Quoted(machine.host), ", which this machine is"),
                "name it under 'nodes', or let the policy have one node only");
  }
  const std::string wanted = TextOf(nodes->gpus), there = TextOf(GpusByType(machine));
  if (wanted == there || !exact) return host;
  return Fail(
      ErrorCode::kUsage,
      StrCat("the policy gives node ", Quoted(host), " ", wanted, ", this machine has ", there),
      "`overcap doctor` says what was found here; `gpus` of the cluster in the configuration declares it");
}

Result<MachinePool> MachinePool::Make(Policy policy, const Machine& machine, bool exact) {
  OC_TRY(host, HostOf(policy, machine, exact));
  if (machine.gpus.size() > kMostGpusPerNode)
    return Fail(ErrorCode::kUsage, StrCat("a machine with a policy has at most ", kMostGpusPerNode, " GPUs"));
  policy = OnlyHere(std::move(policy), host, machine);
  Rules rules = RulesOf(policy);
  MachinePool pool(std::move(policy), std::move(rules));
  for (const NodeRule& node : pool.rules_.nodes) {
    std::vector<int>& indices = pool.gpus_.emplace_back();
    if (node.type < 0) continue;
    for (const Gpu& gpu : machine.gpus) {
      if (NormalPolicyGpuType(gpu.type) == pool.rules_.types[static_cast<size_t>(node.type)])
        indices.push_back(gpu.index);
    }
  }
  return pool;
}

int MachinePool::AccountAt(const std::string& lab, const std::string& user) {
  for (size_t i = 0; i < accounts_.size(); ++i) {
    if (accounts_[i].lab == lab && accounts_[i].user == user) return static_cast<int>(i);
  }
  const auto known = std::ranges::find(users_, user);
  const auto number = static_cast<int>(known - users_.begin());
  if (known == users_.end()) users_.push_back(user);
  const auto at = std::ranges::find(policy_.labs, lab, &PolicyLab::name);
  const auto lab_at = static_cast<int>(at == policy_.labs.end() ? 0 : at - policy_.labs.begin());
  accounts_.push_back({AccountOf(policy_, lab_at, user, number), lab, user});
  return static_cast<int>(accounts_.size()) - 1;
}

// Those that it names and may use.
Result<uint64_t> MachinePool::PartitionsOf(const JobSpec& spec, const std::string& lab) const {
  std::vector<std::string> names = spec.placement.partitions;
  if (names.empty()) names = {DefaultPartition(policy_)->name};
  uint64_t bits = 0;
  for (const std::string& name : names) {
    const PolicyPartition* partition = FindPolicyPartition(policy_, name);
    if (partition == nullptr) {
      std::vector<std::string> known;
      for (const PolicyPartition& one : policy_.partitions) known.push_back(one.name);
      return Fail(ErrorCode::kUsage, StrCat("the policy has no partition ", Quoted(name)),
                  StrCat("partitions: ", Join(known, ", ")));
    }
    if (overcap::MayUse(*partition, lab, spec.user))
      bits |= Bit(static_cast<int>(partition - policy_.partitions.data()));
  }
  if (bits != 0) return bits;
  return Fail(ErrorCode::kDenied, StrCat("user ", Quoted(spec.user), " of lab ", Quoted(lab),
                                         " may not use partition ", Quoted(Join(names, ","))));
}

PoolJob MachinePool::JobOf(const JobSpec& spec, uint64_t key, int account, uint64_t partitions) const {
  PoolJob job;
  job.key = job.seq = key;
  job.account = account;
  job.partitions = partitions;
  const int nodes = spec.resources.elastic() ? spec.resources.nodes : 1;  // its agents, all on one machine
  job.need.gpus = spec.resources.gpus;
  job.need.cpus = spec.resources.cpus * nodes;
  job.need.mem_mb = (spec.resources.mem_bytes * nodes + kMegabyte - 1) / kMegabyte;
  if (!spec.resources.gpu_type.empty()) job.need.types = TypesOf(rules_, spec.resources.gpu_type);
  job.need = WithDefaults(rules_, partitions, job.need);
  if (job.need.gpus == 0) job.need.cpus = std::max(1, job.need.cpus);
  job.limit_s = spec.resources.time_seconds;
  job.submit_s = spec.submitted_us / 1'000'000;
  job.boost = spec.priority;
  return job;
}

Result<PoolJob> MachinePool::Take(const JobSpec& spec, uint64_t key) {
  OC_TRY(lab, LabOf(policy_, spec));
  OC_TRY(partitions, PartitionsOf(spec, lab));
  return JobOf(spec, key, AccountAt(lab, spec.user), partitions);
}

PoolJob MachinePool::TakeRunning(const JobSpec& spec, uint64_t key) {
  const auto lab = LabOf(policy_, spec);
  const std::string counted = lab ? *lab : policy_.labs.front().name;
  const auto partitions = PartitionsOf(spec, counted);
  const uint64_t other = Bit(PartitionAt(DefaultPartition(policy_)->name));
  return JobOf(spec, key, AccountAt(counted, spec.user), partitions ? *partitions : other);
}

int MachinePool::PartitionAt(std::string_view name) const {
  const PolicyPartition* partition = FindPolicyPartition(policy_, name);
  if (partition == nullptr) partition = DefaultPartition(policy_);
  return static_cast<int>(partition - policy_.partitions.data());
}

std::vector<GpuShare> MachinePool::SharesOf(const std::vector<int>& gpus) const {
  std::vector<GpuShare> shares;
  for (size_t node = 0; node < gpus_.size(); ++node) {
    uint64_t bits = 0;
    for (size_t bit = 0; bit < gpus_[node].size(); ++bit) {
      if (std::ranges::find(gpus, gpus_[node][bit]) != gpus.end()) bits |= Bit(static_cast<int>(bit));
    }
    if (bits != 0) shares.push_back({static_cast<int>(node), bits});
  }
  if (shares.empty()) shares.push_back({0, 0});
  return shares;
}

std::vector<int> MachinePool::GpusOf(const std::vector<GpuShare>& shares) const {
  std::vector<int> gpus;
  for (const GpuShare& share : shares) {
    for (uint64_t left = share.gpus; left != 0; left &= left - 1)
      gpus.push_back(gpus_[static_cast<size_t>(share.node)][static_cast<size_t>(__builtin_ctzll(left))]);
  }
  std::ranges::sort(gpus);
  return gpus;
}

}  // namespace overcap::pooled
