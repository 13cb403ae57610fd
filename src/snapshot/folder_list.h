// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace overcap {

struct ListedFile {
  std::string name;
  int64_t size = 0;
  int64_t mtime_us = 0;
};

// What is in the folder `path` below `parent_fd`, sorted by name; nothing when it cannot be read.
std::vector<ListedFile> ListFolder(int parent_fd, const std::string& path);

}  // namespace overcap
