// SPDX-License-Identifier: Apache-2.0
// The folder of a node that a fan-out fills (docs/formats/fanout.md, "The target").
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "control/fanout/folder_chunks.h"
#include "control/file_lock.h"

namespace overcap {

struct FanoutTarget {
  std::string path;
  FileLock lock;
  std::optional<FolderChunks> old;  // what an earlier fan-out left there

  static constexpr const char* kKept = ".overcap/fanout/kept";
  std::string Local(const char* name) const { return path + "/.overcap/fanout/" + name; }
  // The form of `fixed`.
  static std::string EncodePaths(const std::vector<std::string>& paths);
  std::vector<std::string> Fixed() const;  // files in which the last fan-out changed paths

  // `typed` may begin with ~ or a variable of this node. Made when it is missing. kConflict when it holds
  // something that no fan-out has put there (unless `force`), or when another one works on it.
  static Result<FanoutTarget> Take(const std::string& typed, bool force);
};

}  // namespace overcap
