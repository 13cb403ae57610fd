// SPDX-License-Identifier: Apache-2.0
// Which drivers there are, and how a cluster is made from what the configuration says about it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "clusters/cluster.h"
#include "clusters/cluster_settings.h"
#include "clusters/driver_traits.h"

namespace overcap {

std::vector<std::string> ClusterDrivers();
// What is known of a driver without a cluster; nullptr for an unknown one.
const DriverTraits* FindDriver(std::string_view name);

// Takes a line for the user when this process waits for something a cluster needs, such as an engine that is
// being restarted. Until this is called such waits are silent.
void SetClusterNotice(std::function<void(std::string_view line)> say);

// Connects nowhere yet. kUsage for an unknown driver names the nearest.
Result<std::unique_ptr<Cluster>> MakeCluster(const ClusterSettings& settings);

}  // namespace overcap
