// SPDX-License-Identifier: Apache-2.0
// The nodes of a cluster as people and programs read them. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/cluster_picture.h"

namespace overcap {

// The cells of one node's row.
struct NodeCells {
  std::string node, state;
  std::string gpus;    // "2/4 a40, 0/2 t4": used and all of each type
  std::string cpus;    // "3/16"
  std::string load;    // "1.7"
  std::string memory;  // "0.3/15.6G"
  std::string users, reason;
};
NodeCells CellsOf(const PictureNode& node);

// "12 of 20 GPUs in use, 4 free, 4 on nodes that take no jobs; 5 nodes, 1 of them takes no jobs".
std::string NodesSummary(const ClusterPicture& picture);

std::string NodesToJson(const ClusterPicture& picture, int64_t now_us);

}  // namespace overcap
