// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/node_kinds.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "model/gpu_type.h"

namespace overcap {
namespace {

std::string Lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// Of GPUs without a type the node's features tell it.
Result<bool> Fits(const SlurmNode& node, const SlurmNodeGpus& kind, const std::string& expression) {
  if (!kind.type.empty()) return GpuTypeMatches(expression, kind.type);
  for (const std::string& feature : node.features) {
    OC_TRY(fits, GpuTypeMatches(expression, feature));
    if (fits) return true;
  }
  return false;
}

Result<int> CountMatching(const SlurmNode& node, const std::string& expression) {
  if (expression.empty()) return node.GpuTotal();
  int count = 0;
  for (const SlurmNodeGpus& kind : node.gpus) {
    OC_TRY(fits, Fits(node, kind, expression));
    if (fits) count += kind.total;
  }
  return count;
}

// The feature by which all nodes with GPUs of a type can be asked for; "": there is none.
std::string FeatureOf(const std::string& type, const std::vector<SlurmNode>& nodes) {
  std::string common;
  for (const SlurmNode& node : nodes) {
    const bool has = std::any_of(node.gpus.begin(), node.gpus.end(),
                                 [&](const SlurmNodeGpus& kind) { return kind.type == type; });
    if (!has) continue;
    const auto named = std::find_if(node.features.begin(), node.features.end(),
                                    [&](const auto& feature) { return Lower(feature) == Lower(type); });
    if (named == node.features.end() || (!common.empty() && common != *named)) return {};
    common = *named;
  }
  return common;
}

tl::unexpected<Error> TooMuch(const Resources& asked, std::string_view where, int there) {
  const std::string type = asked.gpu_type.empty() ? "" : StrCat(" of type '", asked.gpu_type, "'");
  return Fail(ErrorCode::kUsage,
              StrCat("asks for ", CountOf(asked.gpus, "GPU"), type,
                     asked.nodes > 1 ? StrCat(" on ", asked.nodes, " nodes") : "", ", ", where, " ",
                     there == 0 ? "none" : StrCat(there)),
              "overcap nodes shows what there is");
}

}  // namespace

std::vector<SlurmGpuType> GpuTypesOf(const std::vector<SlurmNode>& nodes) {
  std::vector<SlurmGpuType> types;
  std::set<std::string> seen;
  for (const SlurmNode& node : nodes) {
    for (const SlurmNodeGpus& kind : node.gpus) {
      if (kind.total == 0) continue;
      if (!kind.type.empty() && seen.insert(kind.type).second)
        types.push_back({kind.type, FeatureOf(kind.type, nodes)});
      for (const std::string& feature : node.features) {
        if (kind.type.empty() && seen.insert(feature).second) types.push_back({"", feature});
      }
    }
  }
  return types;
}

Result<void> CheckFitsNodes(const Resources& asked, const std::vector<SlurmNode>& nodes) {
  if (nodes.empty()) return {};
  if (asked.nodes > static_cast<int>(nodes.size())) {
    return Fail(ErrorCode::kUsage,
                StrCat("asks for ", asked.nodes, " nodes, the cluster has ", nodes.size()));
  }
  if (asked.gpus <= 0) return {};
  const int per_node = (asked.gpus + asked.nodes - 1) / std::max(1, asked.nodes);
  int all = 0, most = 0, with_enough = 0;
  for (const SlurmNode& node : nodes) {
    OC_TRY(there, CountMatching(node, asked.gpu_type));
    all += there, most = std::max(most, there);
    with_enough += there >= per_node ? 1 : 0;
  }
  if (asked.gpus > all) return TooMuch(asked, "the cluster has", all);
  const bool even = asked.gpus % std::max(1, asked.nodes) == 0;
  if (even && per_node > most) return TooMuch(asked, "a node has at most", most);
  if (even && with_enough < asked.nodes) {
    return Fail(ErrorCode::kUsage,
                StrCat("asks for ", asked.nodes, " nodes with ", CountOf(per_node, "GPU"),
                       " each, the cluster has ", with_enough),
                "overcap nodes shows what there is");
  }
  return {};
}

NodeInfo InfoOf(const SlurmNode& node) {
  NodeInfo info;
  info.machine.host = node.name;
  info.machine.cpus = std::max(1, node.cpus);
  info.machine.mem_bytes = node.mem_bytes;
  for (const SlurmNodeGpus& kind : node.gpus) {
    for (int i = 0; i < kind.total; ++i) {
      Gpu gpu;
      gpu.index = static_cast<int>(info.machine.gpus.size());
      gpu.type = NormalGpuType(kind.type);
      info.machine.gpus.push_back(std::move(gpu));
    }
  }
  info.gpus_free = node.state.takes_jobs ? std::max(0, node.GpuTotal() - node.GpuUsed()) : 0;
  info.state = node.raw_state;
  return info;
}

std::vector<NodeKind> KindsOf(const std::vector<SlurmNode>& nodes) {
  const auto hardware = [](const SlurmNode& node) {
    std::vector<std::pair<std::string, int>> gpus;
    for (const SlurmNodeGpus& kind : node.gpus) gpus.emplace_back(kind.type, kind.total);
    return std::tuple(node.cpus, node.mem_bytes, std::move(gpus), node.partitions, node.features);
  };
  std::map<decltype(hardware(nodes[0])), size_t> places;
  std::vector<NodeKind> kinds;
  for (const SlurmNode& node : nodes) {
    const auto [place, fresh] = places.emplace(hardware(node), kinds.size());
    if (fresh) kinds.push_back({InfoOf(node).machine, {}, node.partitions, node.features});
    kinds[place->second].names.push_back(node.name);
  }
  return kinds;
}

}  // namespace overcap
