// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "control/config.h"
#include "sys/variables.h"

namespace overcap {

// Clusters that no file names: that of a scheduler whose program is on PATH, and that of an engine whose
// socket is there, unless a cluster of the driver is configured. Where this machine belongs to such a cluster
// and no file says `cluster:`, the one cluster of that driver is the default, so that nobody's job runs on a
// login node by accident; not inside of its jobs.
void AddImpliedClusters(const Variables& variables, Config* config);

}  // namespace overcap
