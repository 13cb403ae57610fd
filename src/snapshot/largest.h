// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "snapshot/code_entry.h"

namespace overcap {

struct PathSize {
  std::string path;
  int64_t files = 0;  // in it; 1 for a file
  int64_t bytes = 0;

  bool operator==(const PathSize&) const = default;
};

struct Largest {
  std::vector<PathSize> files;            // by bytes
  std::vector<PathSize> folders;          // by bytes of all below them
  std::vector<PathSize> crowded_folders;  // by number of files below them
};

// The five largest of each, largest first. A folder of which one folder in it makes up more than 4/5 gives
// way to that one, and no folder inside a named one is named, so that each line is something worth leaving
// out. `entries` is a tree.
Largest FindLargest(const std::vector<CodeEntry>& entries);

}  // namespace overcap
