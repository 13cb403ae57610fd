// SPDX-License-Identifier: Apache-2.0
#include "cli/world.h"

#include "base/text.h"
#include "control/open_cluster.h"

namespace overcap::cli {

Result<void> World::LoadConfig() {
  OC_TRY(config, ::overcap::LoadConfig(parts_.config_places));
  config_ = std::move(config);
  return {};
}

Result<std::string> World::Folder() const {
  if (!parts_.folder.empty()) return parts_.folder;
  return Fail(ErrorCode::kUsage, "the current folder does not exist any more", "cd to one that does");
}

Result<std::string> World::ClusterFolder() const {
  return ClusterRoot(cluster_name(), config_, parts_.root, true);
}

Result<Cluster*> World::GetCluster(std::string_view name) {
  const std::string wanted = name.empty() ? cluster_name() : std::string(name);
  if (const auto known = clusters_.find(wanted); known != clusters_.end()) return known->second.get();
  if (!config_.clusters.contains(wanted)) {
    std::vector<std::string> names;
    for (const auto& [known, unused] : config_.clusters) names.push_back(known);
    return Fail(ErrorCode::kNotFound, StrCat("no cluster '", wanted, "' in the configuration"),
                StrCat("there is: ", Join(names, ", ")));
  }
  OC_TRY(cluster, parts_.make_cluster(wanted, *this));
  return clusters_.emplace(wanted, std::move(cluster)).first->second.get();
}

}  // namespace overcap::cli
