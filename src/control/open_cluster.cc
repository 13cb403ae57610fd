// SPDX-License-Identifier: Apache-2.0
#include "control/open_cluster.h"

#include <vector>

#include "base/text.h"
#include "clusters/all_clusters.h"
#include "control/this_machine.h"

namespace overcap {

Result<std::shared_ptr<Cluster>> OpenCluster(const std::string& name, const Config& config,
                                             const std::string& root, const std::string& binary) {
  const auto found = config.clusters.find(name);
  if (found == config.clusters.end()) {
    std::vector<std::string> names;
    for (const auto& [known, settings] : config.clusters) names.push_back(known);
    const std::string nearest = Nearest(name, names);
    return Fail(ErrorCode::kUsage, StrCat("there is no cluster '", name, "'"),
                nearest.empty() ? StrCat("clusters are: ", Join(names, ", "))
                                : StrCat("did you mean '", nearest, "'?"));
  }
  const ClusterConfig& declared = found->second;
  OC_TRY(
      cluster,
      MakeCluster({.name = name,
                   .driver = declared.driver,
                   .root = root,
                   .binary = binary,
                   .machine = [declared, root](bool fresh) { return ThisMachine(declared, root, fresh); }}));
  return std::shared_ptr<Cluster>(std::move(cluster));
}

}  // namespace overcap
