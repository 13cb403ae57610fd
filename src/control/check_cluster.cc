// SPDX-License-Identifier: Apache-2.0
#include "control/check_cluster.h"

#include "clusters/cluster_view.h"

namespace overcap {
namespace {

Health HealthOf(ClusterFinding::Health health) {
  if (health == ClusterFinding::Health::kBroken) return Health::kBroken;
  return health == ClusterFinding::Health::kWorse ? Health::kWorse : Health::kFine;
}

}  // namespace

std::vector<Finding> CheckCluster(Cluster& cluster, const DoctorSubject& subject) {
  ClusterView* view = cluster.View();
  if (view == nullptr) return Examine(subject);
  std::vector<Finding> findings;
  for (const ClusterFinding& found : view->Check()) {
    findings.push_back({found.topic, HealthOf(found.health), found.text, found.hint});
  }
  return findings;
}

}  // namespace overcap
