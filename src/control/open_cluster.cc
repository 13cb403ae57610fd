// SPDX-License-Identifier: Apache-2.0
#include "control/open_cluster.h"

#include <utility>
#include <vector>

#include "base/text.h"
#include "clusters/all_clusters.h"
#include "control/expand_folder.h"
#include "control/stored/job_depot.h"
#include "control/this_machine.h"

namespace overcap {
namespace {

// The folder that the configuration names with that key of the cluster; "" when it names none.
Result<std::string> FolderOf(const std::string& cluster, std::string_view key, const std::string& folder,
                             const Config& config) {
  if (folder.empty()) return folder;
  auto path = ExpandFolder(folder, Variables::OfThisProcess());
  if (path) return path;
  const auto setting = config.settings.find(StrCat("clusters.", cluster, ".", key));
  if (setting == config.settings.end()) return path;
  return Fail(ErrorCode::kUsage,
              StrCat(setting->second.file, ":", setting->second.line, ": ", path.error().message),
              path.error().hint);
}

Result<SchedulerSettings> SchedulerOf(const std::string& cluster, const ClusterConfig& declared,
                                      const Config& config) {
  SchedulerSettings settings = declared.scheduler;
  OC_TRY(programs, FolderOf(cluster, "programs", settings.programs, config));
  OC_TRY(mirror, FolderOf(cluster, "mirror", settings.mirror_folder, config));
  settings.programs = std::move(programs);
  settings.mirror_folder = std::move(mirror);
  return settings;
}

}  // namespace

Result<std::string> ClusterRoot(const std::string& name, const Config& config, const std::string& root,
                                bool needed) {
  const auto found = config.clusters.find(name);
  if (found == config.clusters.end()) return root;
  const DriverTraits* driver = FindDriver(found->second.driver);
  if (driver != nullptr && driver->find_root != nullptr) return driver->find_root(needed);
  if (found->second.folder.empty()) return root;
  return FolderOf(name, "folder", found->second.folder, config);
}

void SayWhenClustersAreAway(std::function<void(std::string_view line)> say) {
  SetClusterNotice(std::move(say));
}

Result<std::shared_ptr<Cluster>> OpenCluster(const std::string& name, const Config& config,
                                             const std::string& root, const std::string& binary,
                                             std::function<void(const std::string&)> tell) {
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
  OC_TRY(own_root, ClusterRoot(name, config, root, true));
  OC_TRY(scheduler, SchedulerOf(name, declared, config));
  ClusterSettings settings{
      .name = name, .driver = declared.driver, .root = own_root, .binary = binary, .machine = {}};
  settings.machine = [declared, own_root](bool fresh) { return ThisMachine(declared, own_root, fresh); };
  settings.scheduler = std::move(scheduler);
  settings.grace_seconds = config.jobs.grace_seconds;
  OC_TRY(program, FolderOf(name, "node_program", declared.node_program, config));
  settings.node = {declared.node_folder, std::move(program), declared.backlog_bytes};
  settings.depot = MakeJobDepot();
  settings.tell = std::move(tell);
  OC_TRY(cluster, MakeCluster(settings));
  return std::shared_ptr<Cluster>(std::move(cluster));
}

}  // namespace overcap
