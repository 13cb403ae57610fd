// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "clusters/cluster_view.h"

namespace overcap {

// Whether jobs can be kept in `root`, and whether compute nodes are likely to see it too. Makes the folder
// and, for a moment, a file in it.
ClusterFinding CheckJobFolder(const std::string& root);

// "nfs", "lustre", ... for the number of statfs(2); "" for one that is not known.
std::string FileSystemName(long type);
// Whether such a file system lies on this machine alone.
bool IsOfThisMachineAlone(const std::string& name);

}  // namespace overcap
