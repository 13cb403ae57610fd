// SPDX-License-Identifier: Apache-2.0
// Which drivers there are, and how a cluster is made from what the configuration says about it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "clusters/cluster.h"

namespace overcap {

struct ClusterSettings {
  std::string name;
  std::string driver;
  std::string root;                            // where this user's jobs stand
  std::string binary;                          // this program
  std::function<Machine(bool fresh)> machine;  // what this machine has to give; `fresh`: look again
};

std::vector<std::string> ClusterDrivers();

// Connects nowhere yet. kUsage for an unknown driver names the nearest.
Result<std::unique_ptr<Cluster>> MakeCluster(const ClusterSettings& settings);

}  // namespace overcap
