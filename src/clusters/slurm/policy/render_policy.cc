// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/policy/render_policy.h"

#include <algorithm>

#include "base/text.h"
#include "clusters/slurm/policy/policy_difference.h"
#include "clusters/slurm/policy/setting_difference.h"

namespace overcap {
namespace {

constexpr int64_t kMebi = int64_t{1} << 20;

std::string NodeLine(const PolicyNodes& nodes) {
  std::string line = StrCat("NodeName=", nodes.hosts, " CPUs=", nodes.cpus);
  if (nodes.mem_bytes > 0) line += StrCat(" RealMemory=", std::max<int64_t>(1, nodes.mem_bytes / kMebi));
  std::vector<std::string> gres, features;
  for (const TypedGpus& kind : nodes.gpus) {
    gres.push_back(StrCat("gpu:", kind.type, ":", kind.count));
    features.push_back(kind.type);
  }
  features.insert(features.end(), nodes.features.begin(), nodes.features.end());
  if (!gres.empty()) line += StrCat(" Gres=", Join(gres, ","));
  if (!features.empty()) line += StrCat(" Feature=", Join(features, ","));
  return line + " State=UNKNOWN\n";
}

std::string GresLines(const PolicyNodes& nodes) {
  std::string lines;
  int first = 0;
  for (const TypedGpus& kind : nodes.gpus) {
    const int last = first + kind.count - 1;
    const std::string files = last == first ? StrCat(first) : StrCat("[", first, "-", last, "]");
    lines += StrCat("NodeName=", nodes.hosts, " Name=gpu Type=", kind.type, " File=/dev/nvidia", files, "\n");
    first = last + 1;
  }
  return lines;
}

}  // namespace

Result<PolicyRendering> RenderSlurmPolicy(const Policy& policy) {
  OC_TRY(plan, PlanSlurmPolicy(policy));
  PolicyRendering rendering;
  std::string nodes = "# Sockets, cores and addresses as your machines have them.\n", gres;
  for (const PolicyNodes& group : policy.nodes) {
    nodes += NodeLine(group);
    gres += GresLines(group);
  }
  rendering.files = {{"slurm.conf: settings and partitions", SettingLines(plan)},
                     {"slurm.conf: nodes", std::move(nodes)},
                     {"gres.conf", std::move(gres)}};
  LivePolicy nothing;
  nothing.config.values["ClusterName"] = policy.cluster.empty() ? "CLUSTER" : policy.cluster;
  for (PolicyStep& step : CompareSlurmPolicy(plan, nothing, 0).steps)
    rendering.commands.push_back(std::move(step.argv));
  rendering.notes = std::move(plan.notes);
  return rendering;
}

}  // namespace overcap
