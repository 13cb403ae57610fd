// SPDX-License-Identifier: Apache-2.0
#include "clusters/all_clusters.h"

#include <array>

#include "base/text.h"
#include "clusters/fake/fake_cluster.h"
#include "clusters/local/engine_client.h"
#include "clusters/local/local_cluster.h"
#include "clusters/local/system_engine.h"
#include "clusters/slurm/slurm_cluster.h"
#include "clusters/slurm/slurm_traits.h"

namespace overcap {
namespace {

struct Driver {
  DriverTraits traits;
  std::unique_ptr<Cluster> (*make)(const ClusterSettings& settings);
};

// Every driver, and the only place that names them.
constexpr std::array<Driver, 4> kDrivers = {{
    {{.name = "local"},
     [](const ClusterSettings& settings) -> std::unique_ptr<Cluster> {
       return std::make_unique<LocalCluster>(LocalCluster::Options{.name = settings.name,
                                                                   .root = settings.root,
                                                                   .binary = settings.binary,
                                                                   .machine = settings.machine,
                                                                   .tell = settings.tell});
     }},
    {kSystemTraits,
     [](const ClusterSettings& settings) -> std::unique_ptr<Cluster> {
       return std::make_unique<LocalCluster>(LocalCluster::Options{.name = settings.name,
                                                                   .root = settings.root,
                                                                   .socket = SystemSocket(),
                                                                   .system = true,
                                                                   .tell = settings.tell});
     }},
    {kSlurmTraits,
     [](const ClusterSettings& settings) -> std::unique_ptr<Cluster> {
       return std::make_unique<SlurmCluster>(settings);
     }},
    {{.name = "fake"},
     [](const ClusterSettings& settings) -> std::unique_ptr<Cluster> {
       return std::make_unique<FakeCluster>(settings.name, settings.machine(false));
     }},
}};

}  // namespace

std::vector<std::string> ClusterDrivers() {
  std::vector<std::string> names;
  for (const Driver& driver : kDrivers) names.emplace_back(driver.traits.name);
  return names;
}

const DriverTraits* FindDriver(std::string_view name) {
  for (const Driver& driver : kDrivers) {
    if (driver.traits.name == name) return &driver.traits;
  }
  return nullptr;
}

void SetClusterNotice(std::function<void(std::string_view line)> say) {
  SetEngineNotice(std::move(say));
}

Result<std::unique_ptr<Cluster>> MakeCluster(const ClusterSettings& settings) {
  for (const Driver& driver : kDrivers) {
    if (driver.traits.name == settings.driver) return driver.make(settings);
  }
  const std::string nearest = Nearest(settings.driver, ClusterDrivers());
  return Fail(ErrorCode::kUsage,
              StrCat("cluster '", settings.name, "' has the unknown driver '", settings.driver, "'"),
              nearest.empty() ? StrCat("drivers are: ", Join(ClusterDrivers(), ", "))
                              : StrCat("did you mean '", nearest, "'?"));
}

}  // namespace overcap
