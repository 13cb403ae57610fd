// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "clusters/cluster.h"
#include "control/doctor.h"

namespace overcap {

// What `overcap cluster check` looks at: what the cluster itself has to say, else what `doctor` does.
std::vector<Finding> CheckCluster(Cluster& cluster, const DoctorSubject& subject);

}  // namespace overcap
