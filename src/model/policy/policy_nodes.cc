// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "model/policy/policy_sections.h"

namespace overcap {
namespace {

constexpr int kCpusOfUnknownGpu = 8;
constexpr size_t kMaxNodeRows = 100'000;

constexpr PolicyKey<PolicyNodes> kKeys[] = {
    {"gpus", [](const PolicyValue& value, PolicyNodes* out) { value.Gpus(&out->gpus); }},
    {"cpus", [](const PolicyValue& value, PolicyNodes* out) { value.Count(1, kMaxPolicyCount, &out->cpus); }},
    {"mem", [](const PolicyValue& value, PolicyNodes* out) { value.Bytes(&out->mem_bytes); }},
    {"cpus_per_gpu",
     [](const PolicyValue& value, PolicyNodes* out) { value.Count(1, kMaxPolicyCount, &out->cpus_per_gpu); }},
    {"features", [](const PolicyValue& value, PolicyNodes* out) { value.Names(&out->features); }},
};

// CPUs that belong to each of these GPUs by their types; 0: nobody says.
int CpusByType(const std::vector<TypedGpus>& gpus, const GpuTypeCpus& cpus_per_gpu) {
  int most = 0;
  for (const TypedGpus& kind : gpus) {
    const auto found = cpus_per_gpu.find(kind.type);
    if (found != cpus_per_gpu.end()) most = std::max(most, found->second);
  }
  return most;
}

void FillDefaults(const GpuTypeCpus& cpus_per_gpu, PolicyNodes* nodes) {
  const int gpus = GpuCountOf(nodes->gpus);
  const int by_type = CpusByType(nodes->gpus, cpus_per_gpu);
  if (gpus == 0) {
    nodes->cpus_per_gpu = 0;
    return;
  }
  if (nodes->cpus_per_gpu == 0) nodes->cpus_per_gpu = by_type;
  if (nodes->cpus == 0) {
    const int each = nodes->cpus_per_gpu > 0 ? nodes->cpus_per_gpu : kCpusOfUnknownGpu;
    nodes->cpus = static_cast<int>(std::min<int64_t>(kMaxPolicyCount, int64_t{each} * gpus));
  }
  if (nodes->cpus_per_gpu == 0) nodes->cpus_per_gpu = std::max(1, nodes->cpus / gpus);
}

PolicyNodes ReadOne(const std::string& hosts, const PolicyValue& value, const GpuTypeCpus& cpus_per_gpu) {
  const std::string owner = StrCat("nodes ", Quoted(hosts));
  PolicyNodes nodes;
  nodes.hosts = hosts;
  nodes.line = value.line();
  nodes.names = value.notes().Hosts(value.line(), owner, hosts);
  if (value.IsMap())
    ReadPolicyMap<PolicyNodes>(&value.notes(), value.node(), owner, kKeys, &nodes);
  else
    value.Gpus(&nodes.gpus);
  FillDefaults(cpus_per_gpu, &nodes);
  if (nodes.cpus == 0) value.notes().Error(value.line(), StrCat(owner, " have neither 'gpus' nor 'cpus'"));
  return nodes;
}

}  // namespace

void ReadCpusPerGpu(const PolicyValue& value, GpuTypeCpus* out) {
  for (const auto& [type, count] : PolicyEntries(&value.notes(), value.node(), value.name())) {
    int cpus = 0;
    count.Count(1, kMaxPolicyCount, &cpus);
    if (!IsPolicyName(type)) value.notes().Error(count.line(), StrCat(Quoted(type), " is no GPU type"));
    if (cpus > 0) (*out)[NormalPolicyGpuType(type)] = cpus;
  }
}

void ReadPolicyNodes(const PolicyValue& value, const GpuTypeCpus& cpus_per_gpu, Policy* policy) {
  for (const auto& [hosts, entry] : PolicyEntries(&value.notes(), value.node(), value.name())) {
    if (policy->nodes.size() == kMaxNodeRows) return value.notes().Error(entry.line(), "too many nodes");
    policy->nodes.push_back(ReadOne(hosts, entry, cpus_per_gpu));
  }
}

}  // namespace overcap
