// SPDX-License-Identifier: Apache-2.0
#include "control/implied_clusters.h"

#include <algorithm>
#include <unistd.h>

#include "clusters/all_clusters.h"
#include "sys/process.h"

namespace overcap {
namespace {

std::vector<std::string> ClustersOf(std::string_view driver, const Config& config) {
  std::vector<std::string> names;
  for (const auto& [name, cluster] : config.clusters) {
    if (cluster.driver == driver) names.push_back(name);
  }
  return names;
}

bool MachineBelongs(const DriverTraits& driver, const Variables& variables) {
  if (!driver.job_variable.empty() && variables.Has(driver.job_variable)) return false;
  if (!variables.Get(driver.machine_variable).empty()) return true;
  return std::ranges::any_of(driver.machine_files, [](std::string_view file) {
    return !file.empty() && access(std::string(file).c_str(), F_OK) == 0;
  });
}

bool IsAtHand(const DriverTraits& driver, const Variables& variables) {
  if (!driver.program.empty()) return ResolveProgram(driver.program, variables.Get("PATH"), "/").has_value();
  const std::string named(variables.Get(driver.machine_variable));
  return access(named.empty() ? std::string(driver.socket).c_str() : named.c_str(), F_OK) == 0;
}

void Add(const DriverTraits& driver, const Variables& variables, Config* config) {
  const std::string name(driver.name);
  const bool absent = ClustersOf(driver.name, *config).empty() && !config->clusters.contains(name);
  if (absent && IsAtHand(driver, variables)) {
    ClusterConfig& cluster = config->clusters[name];
    cluster.driver = name;
    cluster.implied = true;
  }
  const std::vector<std::string> clusters = ClustersOf(driver.name, *config);
  if (clusters.size() == 1 && !config->settings.contains("cluster") && MachineBelongs(driver, variables)) {
    config->cluster = clusters[0];
  }
}

}  // namespace

void AddImpliedClusters(const Variables& variables, Config* config) {
  if (variables.entries().empty()) return;
  for (const std::string& name : ClusterDrivers()) {
    const DriverTraits* driver = FindDriver(name);
    if (!driver->program.empty() || !driver->socket.empty()) Add(*driver, variables, config);
  }
}

}  // namespace overcap
