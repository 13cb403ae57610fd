// SPDX-License-Identifier: Apache-2.0
// Sources of a fan-out that are no folder of this machine: they become one below <root>/fanout, and the next
// time only what differs is fetched.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "control/transfer/transfer.h"
#include "snapshot/repository/repository.h"
#include "snapshot/restore/restore.h"
#include "stores/store.h"

namespace overcap {

struct SourceFolder {
  std::string folder;            // absolute
  std::vector<std::string> old;  // paths that it had: what is written in its files
};

// kUnavailable, or the first file's own error, when not all of it came.
Result<SourceFolder> BringObjects(const Store& from, const std::string& root, TransferOptions options);

Result<SourceFolder> BringSnapshot(const Repository& repository, const NamedSnapshot& snapshot,
                                   const std::string& root,
                                   std::function<void(const RestoreProgress&)> progress,
                                   const std::atomic<bool>* stop);

}  // namespace overcap
