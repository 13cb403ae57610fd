// SPDX-License-Identifier: Apache-2.0
#include "model/picture_fit.h"

#include <algorithm>

#include "base/text.h"
#include "model/gpu_type.h"

namespace overcap {
namespace {

bool IsIn(const PictureNode& node, std::string_view partition) {
  return partition.empty() ||
         std::find(node.partitions.begin(), node.partitions.end(), partition) != node.partitions.end();
}

bool TypeMatches(std::string_view expression, std::string_view type) {
  if (expression.empty()) return true;
  return !type.empty() && GpuTypeMatches(expression, type).value_or(false);
}

bool AnyFeatureMatches(const PictureNode& node, std::string_view expression) {
  return std::any_of(node.features.begin(), node.features.end(),
                     [&](const std::string& feature) { return TypeMatches(expression, feature); });
}

bool AnyTypeMatches(const PictureNode& node, std::string_view expression) {
  return std::any_of(node.gpus.begin(), node.gpus.end(),
                     [&](const TypedGpus& kind) { return TypeMatches(expression, kind.type); });
}

// Counts kinds of `gpus` that the expression means: by their own type, or all by a feature of the node.
int CountKinds(const PictureNode& node, const std::vector<TypedGpus>& gpus, std::string_view expression) {
  const bool by_feature =
      !expression.empty() && !AnyTypeMatches(node, expression) && AnyFeatureMatches(node, expression);
  int sum = 0;
  for (const TypedGpus& kind : gpus) sum += by_feature || TypeMatches(expression, kind.type) ? kind.count : 0;
  return sum;
}

bool FitsEmpty(const PictureNode& node, const PictureNeed& need) {
  return GpusOfType(node, need.gpu_type) >= need.gpus && node.cpus >= need.cpus &&
         (node.mem_bytes == 0 || node.mem_bytes >= need.mem_bytes) &&
         FeaturesMatch(node.features, need.features);
}

bool FitsNow(const PictureNode& node, const PictureNeed& need) {
  return node.usable && FreeGpusOfType(node, need.gpu_type) >= need.gpus &&
         node.cpus - node.cpus_used >= need.cpus &&
         (node.mem_bytes == 0 || node.mem_bytes - node.mem_used >= need.mem_bytes);
}

int PerNode(int all, int nodes) {
  return (all + nodes - 1) / nodes;
}

}  // namespace

PictureNeed NeedOf(const PictureJob& job) {
  PictureNeed need;
  need.nodes = std::max(1, job.node_count);
  need.gpus = PerNode(job.gpus, need.nodes);
  need.cpus = PerNode(job.cpus, need.nodes);
  if (job.gpu_types.size() == 1) need.gpu_type = job.gpu_types[0].type;
  need.features = job.features;
  return need;
}

int GpusOfType(const PictureNode& node, std::string_view gpu_type) {
  return CountKinds(node, node.gpus, gpu_type);
}

int FreeGpusOfType(const PictureNode& node, std::string_view gpu_type) {
  if (!node.usable) return 0;
  return std::max(0, GpusOfType(node, gpu_type) - CountKinds(node, node.gpus_used, gpu_type));
}

GpuRoom GpuRoomOf(const ClusterPicture& picture, std::string_view partition, std::string_view gpu_type) {
  GpuRoom room;
  for (const PictureNode& node : picture.nodes) {
    if (!IsIn(node, partition)) continue;
    const int total = GpusOfType(node, gpu_type);
    room.total += total;
    const int idle = std::max(0, total - CountKinds(node, node.gpus_used, gpu_type));
    (node.usable ? room.free : room.away) += idle;
  }
  return room;
}

NodeFit CountFits(const ClusterPicture& picture, std::string_view partition, const PictureNeed& need) {
  NodeFit fit;
  for (const PictureNode& node : picture.nodes) {
    if (!IsIn(node, partition) || !FitsEmpty(node, need)) continue;
    fit.ever += 1;
    fit.up += node.usable ? 1 : 0;
    fit.now += FitsNow(node, need) ? 1 : 0;
  }
  return fit;
}

bool FeaturesMatch(const std::vector<std::string>& features, std::string_view wanted) {
  if (wanted.empty() || wanted.find_first_of("[]()*") != std::string_view::npos) return true;
  for (const std::string& choice : Split(wanted, '|')) {
    bool all = true;
    std::string words = choice;
    std::replace(words.begin(), words.end(), ',', '&');
    for (const std::string& word : Split(words, '&')) {
      all = all && (word.empty() || std::find(features.begin(), features.end(), word) != features.end());
    }
    if (all) return true;
  }
  return false;
}

}  // namespace overcap
