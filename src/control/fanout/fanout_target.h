// SPDX-License-Identifier: Apache-2.0
// The folder of a node that a fan-out fills (docs/formats/fanout.md, "The target").
#pragma once

#include <optional>
#include <string>

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

  // `typed` may begin with ~ or a variable of this node. Made when it is missing. kConflict when it holds
  // something that no fan-out has put there (unless `force`), or when another one works on it.
  static Result<FanoutTarget> Take(const std::string& typed, bool force);
};

}  // namespace overcap
