// SPDX-License-Identifier: Apache-2.0
// What grows in the launch folder of an elastic job's node, attempt-N/node-K (docs/formats/elastic.md).
#pragma once

#include <string>
#include <vector>

namespace overcap {

struct NodeFile {
  std::string name;    // relative to the job's folder
  bool ended = false;  // of an epoch after which another has begun: it does not grow any more
};

// Its events, and the logs and stacks of all its epochs; none when it is not there.
std::vector<NodeFile> NodeFilesIn(const std::string& job_dir, const std::string& folder);

}  // namespace overcap
