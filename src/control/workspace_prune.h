// SPDX-License-Identifier: Apache-2.0
// Which snapshots of a workspace stay, and freeing the space of those that went.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "control/config.h"
#include "control/workspace_open.h"
#include "snapshot/repository/upkeep.h"

namespace overcap {

KeepRules KeepRulesOf(const Config::Workspaces::Keep& keep);

struct WorkspacePruneRequest {
  KeepRules rules;  // none: every snapshot stays
  bool dry_run = false;
  int64_t wait_us = 60'000'000;
  std::function<void(const std::string& step, int64_t done, int64_t total)> progress;
};

struct WorkspacePruned {
  std::vector<KeptSnapshot> snapshots;  // all that there were, with why they stay
  PruneReport data;
};

// Forgets what the rules do not keep, then removes from the whole repository what no snapshot needs.
Result<WorkspacePruned> PruneWorkspace(const WorkspaceWorld& world, const Workspace& workspace,
                                       const Repository& repository, const WorkspacePruneRequest& request);

// Removes from a repository what neither a snapshot nor the code of a job needs, whoever asks for it.
Result<PruneReport> PruneData(const Repository& repository, const WorkspacePruneRequest& request);

struct RepositoryCollected {
  std::string store;
  std::optional<PruneReport> report;
  std::string skipped;  // why it was not looked at
};
// For `gc`: every repository of every workspace but `done`, without waiting for backups that run. Asks
// nobody: those that only a passphrase opens are skipped.
std::vector<RepositoryCollected> CollectRepositories(const WorkspaceWorld& world, const std::string& done,
                                                     bool dry_run);

}  // namespace overcap
