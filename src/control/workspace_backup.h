// SPDX-License-Identifier: Apache-2.0
// Saves a workspace: one snapshot of its folder as it is.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "control/workspace_open.h"
#include "snapshot/backup/backup.h"

namespace overcap {

struct WorkspaceBackupOptions {
  std::string message;
  std::string_view who = "overcap workspace backup";  // for others who find the folder locked
  bool read_all = false;  // every file is read, whatever the cache says: after damage in the repository
  std::function<void(const BackupProgress&)> progress;
  const std::atomic<bool>* stop = nullptr;
};

struct WorkspaceBackup {
  BackupReport report;
  // The newest snapshot before, when this folder did not come from it: two copies are being worked in.
  std::optional<NamedSnapshot> overtaken;

  // The snapshot that the folder is equal to now.
  const NamedSnapshot& Newest() const { return report.snapshot ? *report.snapshot : *report.parent; }
};

// `found` is of FindWorkspaceHere. kConflict while somebody else saves or changes the folder, or a restore of
// it has not ended; or when `stop` was set.
Result<WorkspaceBackup> BackUpWorkspace(const WorkspaceWorld& world, const FoundWorkspace& found,
                                        const Repository& repository, const WorkspaceBackupOptions& options);

// The same with the lock already held, for who has it.
Result<WorkspaceBackup> BackUpLocked(const WorkspaceWorld& world, const FoundWorkspace& found,
                                     const Repository& repository, const WorkspaceBackupOptions& options);

}  // namespace overcap
