// SPDX-License-Identifier: Apache-2.0
// Makes the Python environments in a folder that came from elsewhere work where it is now.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "control/fanout/folder_chunks.h"
#include "snapshot/restore/wanted_tree.h"

namespace overcap {

struct FixRequest {
  std::string target;            // where the folder is
  std::vector<std::string> old;  // where it was, one path or several for the same place
  std::string kept;              // relative to the target: here stays what files held before; exists
};

// The files that were changed, relative to the target. What each held is kept under the id of its content,
// and `chunks` knows that.
Result<std::vector<std::string>> FixEnvironments(const WantedTree& tree, const FixRequest& request,
                                                 FolderChunks* chunks);

}  // namespace overcap
