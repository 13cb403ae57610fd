// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace overcap {

struct ListedName {
  std::string name;
  bool is_folder = false;
  bool is_special = false;  // a pipe, socket or device: no snapshot keeps such
};

// All names in a folder (`folder_fd` may be O_PATH), by their bytes. False and errno when it cannot be read.
// `may_chmod`: its owner gives himself the right to.
bool ListNames(int folder_fd, bool may_chmod, std::vector<ListedName>* names);

}  // namespace overcap
