// SPDX-License-Identifier: Apache-2.0
// What of a shared cluster is free for somebody, and where a job would fit. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/cluster_picture.h"

namespace overcap {

// What a job asks for on each of its nodes.
struct PictureNeed {
  int nodes = 1;
  int gpus = 0, cpus = 0;  // per node
  int64_t mem_bytes = 0;   // per node
  std::string gpu_type;    // a GPU type expression (gpu_type.h); "": any
  std::string features;    // of nodes, in the cluster's words: "a40|rtx_6000", "a40&ib"
};
PictureNeed NeedOf(const PictureJob& job);

struct GpuRoom {
  int free = 0, total = 0;  // free: on nodes that take jobs
  int away = 0;             // not in use, on nodes that take none
};
// GPUs of a type (expression; "": all) in a partition ("": the whole cluster).
GpuRoom GpuRoomOf(const ClusterPicture& picture, std::string_view partition, std::string_view gpu_type);

// GPUs of a node that a type expression means; a node may tell the type by its features.
int GpusOfType(const PictureNode& node, std::string_view gpu_type);
int FreeGpusOfType(const PictureNode& node, std::string_view gpu_type);  // 0 when it takes no jobs

struct NodeFit {
  int now = 0;   // nodes where one share fits now
  int up = 0;    // where it would fit when they are empty
  int ever = 0;  // the same, with nodes that are away
};
NodeFit CountFits(const ClusterPicture& picture, std::string_view partition, const PictureNeed& need);

// "a40|rtx_6000", "a40&ib", "a40,ib": simple ones; what is more than that counts as fulfilled.
bool FeaturesMatch(const std::vector<std::string>& features, std::string_view wanted);

}  // namespace overcap
