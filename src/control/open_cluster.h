// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "clusters/cluster.h"
#include "control/config.h"

namespace overcap {

// Where the jobs and the store of that cluster stand: its `folder`, else `root`. kUsage when the folder
// cannot be told; an unknown cluster has none of its own. `needed`: an engine that does not answer is asked
// again for a while.
Result<std::string> ClusterRoot(const std::string& name, const Config& config, const std::string& root,
                                bool needed = false);

// Clusters report to the person at this terminal when a command waits for one that does not answer.
void SayWhenClustersAreAway(std::function<void(std::string_view line)> say);

// The cluster of that name as the configuration describes it, without connecting anywhere yet. `root` is
// where this user's jobs stand unless the cluster has a folder of its own, `binary` this program; `tell`
// takes what the user should know at once. kUsage names the nearest when there is none of that name.
Result<std::shared_ptr<Cluster>> OpenCluster(const std::string& name, const Config& config,
                                             const std::string& root, const std::string& binary,
                                             std::function<void(const std::string&)> tell = {});

}  // namespace overcap
