// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace overcap {

// What this process writes from here on stands in this new file.
Result<void> WriteTo(const std::string& path);

// `overcap launch ...` of a node, to its end. It dies with this process. Signals of Slurm go to all processes
// of a task: they are not for us, from here on.
struct NodeProcess {
  std::vector<std::string> argv;
  std::vector<std::string> env;
  std::string folder;  // "": this process's own
};
Result<int> RunToEnd(NodeProcess process);

}  // namespace overcap
