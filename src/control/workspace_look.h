// SPDX-License-Identifier: Apache-2.0
// What there is to know of workspaces without changing anything.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "control/workspace_changes.h"
#include "control/workspace_open.h"

namespace overcap {

// What the registry and the names of snapshots tell: no secret is needed.
struct WorkspaceGlance {
  Workspace workspace;
  std::string folder;  // on this host
  bool here = false;
  int64_t snapshots = 0;
  int64_t newest_us = 0;  // 0: there is none
  std::string problem;    // why the repository cannot be looked at
};
std::vector<WorkspaceGlance> GlanceAtWorkspaces(const WorkspaceWorld& world, std::vector<Error>* problems);

struct WorkspaceStatus {
  FoundWorkspace found;
  std::optional<NamedSnapshot> newest;
  std::optional<NamedSnapshot> base;  // that the folder came from, or was saved as
  int64_t snapshots = 0;
  bool base_gone = false;                // the snapshot that the folder came from is not there any more
  std::optional<CompareReport> changes;  // that are not saved; nullopt: not here, or it cannot be told
  std::string problem;                   // why it cannot be told
  std::optional<std::string> busy;       // who saves or changes the folder now
  std::vector<WorkspacePlace> places;    // newest first
};
Result<WorkspaceStatus> LookAtWorkspace(const FoundWorkspace& found, const Repository& repository);

}  // namespace overcap
