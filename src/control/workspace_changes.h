// SPDX-License-Identifier: Apache-2.0
// What was changed in a workspace's folder since it was equal to a snapshot (docs/formats/workspaces.md).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "control/workspace_open.h"
#include "snapshot/restore/folder_look.h"

namespace overcap {

struct LocalChanges {
  std::vector<FolderDifference> changes;  // all of them, in the order of trees
  bool known = true;  // false: the snapshot that the folder came from is gone, so all that differs counts
  int64_t newest_mtime_ns = 0;  // of what was added or changed

  bool None() const { return changes.empty(); }
};

// The one answer to what is unsaved: what no snapshot that this folder is made of has as it is in the folder.
// Those are its base and the one that a cut-off restore was bringing, as long as the repository has them, and
// `target`: what is about to be restored, or the tree of the base to know only what changed. What a cut-off
// restore itself has left does not count. `look`: how the folder was found beside its base, for a restore.
Result<LocalChanges> FindLocalChanges(const FoundWorkspace& found, const Repository& repository,
                                      const Digest& target, std::optional<FolderLook>* look = nullptr);

// Whether the repository still has the snapshot that the folder was last equal to, or another of its tree.
Result<bool> BaseIsKept(const FoundWorkspace& found, const Repository& repository);

// "'a', 'b' and 3 more".
std::string SomeOf(const std::vector<FolderDifference>& changes);

// Both are in the order of trees: the paths that differ from both, as `second` says it. Pure.
std::vector<FolderDifference> InBoth(const std::vector<FolderDifference>& first,
                                     const std::vector<FolderDifference>& second);

}  // namespace overcap
