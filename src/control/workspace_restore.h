// SPDX-License-Identifier: Apache-2.0
// Brings a workspace, or parts of it, back from a snapshot. What is only in a folder is never lost unless the
// caller forces it.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "control/workspace_changes.h"
#include "control/workspace_open.h"
#include "snapshot/restore/restore.h"

namespace overcap {

struct WorkspaceRestoreOptions {
  bool force = false;
  std::function<void(const RestoreProgress&)> progress;
  const std::atomic<bool>* stop = nullptr;
};

enum class InitOutcome {
  kRestored,    // from nothing, from an older snapshot, or from where a restore was cut off
  kHasNewest,   // the folder is the newest snapshot
  kHasChanges,  // it is the newest snapshot and was changed since: that is what is worth keeping
};

struct WorkspaceInit {
  InitOutcome outcome = InitOutcome::kRestored;
  std::string folder;
  NamedSnapshot snapshot;  // the newest
  LocalChanges changes;    // of kHasChanges
  RestoreReport report;    // of kRestored
};

// Makes `folder` ("": where it belongs) the newest snapshot. kConflict, with nothing touched, when it holds
// something else, or changes that the newest snapshot does not have.
Result<WorkspaceInit> InitWorkspace(const WorkspaceWorld& world, FoundWorkspace found,
                                    const Repository& repository, const std::string& folder,
                                    const WorkspaceRestoreOptions& options);

// Back to a snapshot in the workspace's own folder: `paths` (relative) or, when empty, all of it. kConflict
// when that would lose changes.
Result<RestoreReport> RestoreInPlace(const WorkspaceWorld& world, const FoundWorkspace& found,
                                     const Repository& repository, const NamedSnapshot& snapshot,
                                     const std::vector<std::string>& paths,
                                     const WorkspaceRestoreOptions& options);

// Into another folder, which must be missing or empty, or be where the same restore was cut off.
Result<RestoreReport> RestoreElsewhere(const Repository& repository, const NamedSnapshot& snapshot,
                                       const std::vector<std::string>& paths, const std::string& target,
                                       const WorkspaceRestoreOptions& options);

// Whether the path is one of `paths` or below one; true for all when there are none. Pure.
bool IsWanted(std::string_view path, const std::vector<std::string>& paths);

}  // namespace overcap
