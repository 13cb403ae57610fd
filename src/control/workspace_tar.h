// SPDX-License-Identifier: Apache-2.0
// Workspaces from tars and as tars: nobody is locked in.
#pragma once

#include <string>

#include "base/result.h"
#include "control/workspace_create.h"
#include "control/workspace_open.h"
#include "snapshot/tar/tar_export.h"
#include "snapshot/tar/tar_import.h"

namespace overcap {

struct WorkspaceImportRequest {
  std::string tar;                   // a file, or "-": stdin
  WorkspaceCreateRequest workspace;  // name, at, store, secret and exclude count
  bool add = false;                  // to a workspace that there is already, as its newest snapshot
  TarImportRequest import;           // strip, skip_special, message, progress and stop count
};

struct WorkspaceImport {
  FoundWorkspace found;
  TarImportReport report;
};

// The snapshot, then the registration; nothing of both when one fails. kConflict when the name is taken and
// `add` is not set.
Result<WorkspaceImport> ImportWorkspace(const WorkspaceWorld& world, const WorkspaceImportRequest& request);

}  // namespace overcap
