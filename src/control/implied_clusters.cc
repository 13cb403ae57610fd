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

bool Exists(const std::string& path) {
  return access(path.c_str(), F_OK) == 0;
}

bool MachineBelongs(const DriverTraits& driver, const Variables& variables, const std::string& program) {
  if (!driver.job_variable.empty() && variables.Has(driver.job_variable)) return false;
  if (driver.is_set_up) return driver.is_set_up(variables, program, Exists);
  return !variables.Get(driver.machine_variable).empty() || Exists(std::string(driver.socket));
}

// The program or socket by which its clusters are reached; "": there is none.
std::string AtHand(const DriverTraits& driver, const Variables& variables) {
  if (!driver.program.empty()) return ResolveProgram(driver.program, variables.Get("PATH"), "/").value_or("");
  std::string socket(variables.Get(driver.machine_variable));
  if (socket.empty()) socket = driver.socket;
  return Exists(socket) ? socket : "";
}

void Add(const DriverTraits& driver, const Variables& variables, Config* config) {
  const std::string name(driver.name);
  const bool absent = ClustersOf(driver.name, *config).empty() && !config->clusters.contains(name);
  const std::string at_hand = AtHand(driver, variables);
  if (absent && !at_hand.empty()) {
    ClusterConfig& cluster = config->clusters[name];
    cluster.driver = name;
    cluster.implied = true;
  }
  const std::vector<std::string> clusters = ClustersOf(driver.name, *config);
  if (clusters.size() == 1 && !config->settings.contains("cluster") &&
      MachineBelongs(driver, variables, at_hand)) {
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
