// SPDX-License-Identifier: Apache-2.0
// <folder>/.overcap of a workspace: what this copy of it knows (docs/formats/workspaces.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "control/file_lock.h"
#include "control/workspace.h"
#include "sys/clock.h"

namespace overcap {

struct WorkspaceCopy {
  std::string workspace;
  std::string id;
  std::string root;
  std::string base, base_tree;            // snapshot and tree that the folder was last equal to, hex; ""
  std::string restoring, restoring_tree;  // what a restore that has not ended makes of it; ""

  bool operator==(const WorkspaceCopy&) const = default;
};

std::string WorkspaceCopyToJson(const WorkspaceCopy& copy);
Result<WorkspaceCopy> WorkspaceCopyFromJson(std::string_view json, const std::string& file);

std::string LocalFolderOf(const std::string& folder);  // <folder>/.overcap
std::string SeenFileOf(const std::string& folder);

// kNotFound when the folder is no workspace.
Result<WorkspaceCopy> ReadWorkspaceCopy(const std::string& folder);
Result<void> WriteWorkspaceCopy(const std::string& folder, const WorkspaceCopy& copy);

// The nearest folder, `folder` or above it, that is a workspace; "" when none is.
std::string WorkspaceAbove(const std::string& folder);

// One process at a time saves or changes a workspace's folder. kConflict names who does. `what` is the
// command, for others: "overcap workspace backup".
Result<FileLock> LockWorkspace(const std::string& folder, std::string_view what, const Clock& clock);
// When it was taken, by the clock of the folder's file system: what has a ctime before that was there.
int64_t LockedNs(const FileLock& lock);
// Who has the lock now: "pid 4711 on node7: overcap workspace backup, since ..."; nullopt: nobody.
std::optional<std::string> WorkspaceLockHolder(const std::string& folder);

// The text of <folder>/.overcap/activate.
std::string ActivateText(const Workspace& workspace, const std::string& folder);
Result<void> WriteActivate(const Workspace& workspace, const std::string& folder);

}  // namespace overcap
