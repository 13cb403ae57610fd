// SPDX-License-Identifier: Apache-2.0
#include "control/job_request.h"

#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "model/gpu_type.h"

namespace overcap {
namespace {

constexpr int64_t kMostGpus = 1'000'000;

int DefaultGpus(const JobRequest& request, const Config& config, const std::vector<NodeKind>& nodes) {
  if (config.defaults.gpus != kGpusByMachine) return config.defaults.gpus;
  if (!request.batch_script.empty()) return 0;  // it would have said so
  return std::any_of(nodes.begin(), nodes.end(),
                     [](const NodeKind& kind) { return !kind.machine.gpus.empty(); });
}

int DefaultRanks(const Config& config, int gpus_per_node) {
  if (config.defaults.ranks_per_node > 0) return config.defaults.ranks_per_node;
  return std::max(1, gpus_per_node);
}

// The share of the processors that goes with the GPUs, so that jobs that fit by GPUs fit by processors too;
// without GPUs one for each rank.
int DefaultCpus(const Config& config, const Resources& resources, const Machine* node) {
  if (config.defaults.cpus > 0) return config.defaults.cpus;
  if (node == nullptr) return 0;
  if (resources.gpus == 0) return std::min(resources.ranks_per_node, node->cpus);
  if (node->gpus.empty()) return 0;
  const int gpus_per_node = resources.gpus / resources.nodes;
  return std::min(node->cpus * gpus_per_node / static_cast<int>(node->gpus.size()), node->cpus);
}

bool Matches(const std::string& expression, const std::string& type) {
  return GpuTypeMatches(expression, type).value_or(false);
}

// How many GPUs of the kind a job with this expression may use.
int MatchingGpus(const NodeKind& kind, const std::string& expression) {
  const auto by_feature = [&] {
    return std::any_of(kind.features.begin(), kind.features.end(),
                       [&](const std::string& feature) { return Matches(expression, feature); });
  };
  const auto& gpus = kind.machine.gpus;
  return static_cast<int>(std::count_if(gpus.begin(), gpus.end(), [&](const Gpu& gpu) {
    return expression.empty() || (gpu.type.empty() ? by_feature() : Matches(expression, gpu.type));
  }));
}

// Node lists such as "n[1-4]" name no single node, and then any may be meant.
bool Allows(const Placement& placement, const NodeKind& kind, const std::vector<NodeKind>& all) {
  const auto has = [&](const NodeKind& one) {
    return std::find(one.names.begin(), one.names.end(), placement.node) != one.names.end();
  };
  if (!placement.node.empty() && std::any_of(all.begin(), all.end(), has)) return has(kind);
  return placement.partitions.empty() ||
         std::find_first_of(kind.partitions.begin(), kind.partitions.end(), placement.partitions.begin(),
                            placement.partitions.end()) != kind.partitions.end();
}

Result<int> ChooseRanks(const JobRequest& request, const Config& config, int gpus_per_node) {
  if (request.one_rank_per_node && request.ranks_per_node && *request.ranks_per_node != 1) {
    return Fail(ErrorCode::kUsage, "--one-rank-per-node and --ranks-per-node say different things",
                "give one of them");
  }
  if (request.one_rank_per_node) return 1;
  if (!request.batch_script.empty()) return request.ranks_per_node.value_or(1);
  return request.ranks_per_node.value_or(DefaultRanks(config, gpus_per_node));
}

}  // namespace

const Machine* NodeForDefaults(const std::vector<NodeKind>& nodes, const Resources& resources,
                               const Placement& placement) {
  const int per_node = resources.gpus / std::max(1, resources.nodes);
  const Machine* best = nullptr;
  for (const NodeKind& kind : nodes) {
    const Machine& one = kind.machine;
    if (!Allows(placement, kind, nodes)) continue;
    if (per_node > 0 && MatchingGpus(kind, resources.gpu_type) < per_node) continue;
    const auto better = [&] {
      if (per_node == 0) return one.cpus > best->cpus;
      return one.cpus * best->gpus.size() < best->cpus * one.gpus.size();
    };
    if (best == nullptr || better()) best = &one;
  }
  return best;
}

Result<Resources> ChooseResources(const JobRequest& request, const Config& config,
                                  const std::vector<NodeKind>& nodes) {
  OC_TRY_VOID(CheckGpuTypeExpression(request.gpu_type));
  Resources resources;
  resources.nodes = std::max(1, request.nodes.value_or(1));
  resources.max_nodes = request.max_nodes;
  const int64_t shared = int64_t{request.gpus_per_node.value_or(0)} * resources.nodes;
  if (shared > kMostGpus)
    return Fail(ErrorCode::kUsage,
                StrCat("asks for ", shared, " GPUs, at most ", kMostGpus, " are possible"));
  if (request.gpus_per_node)
    resources.gpus = static_cast<int>(shared);
  else
    resources.gpus = request.gpus.value_or(DefaultGpus(request, config, nodes) * resources.nodes);
  resources.gpu_type = request.gpu_type;
  if (!request.gpu_type.empty() && resources.gpus == 0) {
    return Fail(ErrorCode::kUsage, StrCat("--gpu-type '", request.gpu_type, "' without any GPU"),
                "-n GPUS says how many");
  }
  if (resources.gpus % resources.nodes != 0) {
    return Fail(ErrorCode::kUsage,
                StrCat(resources.gpus, " GPUs cannot be shared evenly by ", resources.nodes, " nodes"),
                resources.elastic()
                    ? "-n is the number of GPUs with the least nodes; --gpus-per-node says it plainly"
                    : "-n is the number of GPUs in all");
  }
  OC_TRY(ranks, ChooseRanks(request, config, resources.gpus / resources.nodes));
  resources.ranks_per_node = ranks;
  const Machine* node = NodeForDefaults(nodes, resources, request.placement);
  resources.cpus = request.cpus.value_or(DefaultCpus(config, resources, node));
  resources.mem_bytes = request.mem_bytes.value_or(config.defaults.mem_bytes);
  resources.time_seconds = request.time_seconds.value_or(config.defaults.time_seconds);
  return resources;
}

Result<Workdir> FindWorkdir(const JobRequest& request) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(request.folder).lexically_normal();
  fs::path path = (folder / request.workdir).lexically_normal();
  if (!path.has_filename() && path.has_relative_path()) path = path.parent_path();  // "a/" -> "a"
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) {
    return Fail(ErrorCode::kUsage, StrCat("workdir '", request.workdir, "' does not exist"),
                StrCat("looked for ", ShellQuote(path.string())));
  }
  if (!fs::is_directory(status))
    return Fail(ErrorCode::kUsage, StrCat("workdir '", request.workdir, "' is no folder"));
  Workdir workdir{.path = path.string(), .inside = true, .inner = ""};
  const std::string inner = path.lexically_relative(folder).string();
  workdir.inside = !inner.empty() && inner != ".." && !inner.starts_with("../");
  if (workdir.inside && inner != ".") workdir.inner = inner;
  return workdir;
}

}  // namespace overcap
