// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace overcap {

// Which folders have to be listed when it is known what may have changed: each path that was named, in case
// it is a folder, and the folder that it is in. Pure.
class DirtyPaths {
 public:
  explicit DirtyPaths(const std::vector<std::string>& paths);  // relative; "" and "." are the root

  bool Lists(const std::string& folder) const { return listed_.contains(folder); }

 private:
  std::unordered_set<std::string> listed_;
};

}  // namespace overcap
