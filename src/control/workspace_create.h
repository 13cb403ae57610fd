// SPDX-License-Identifier: Apache-2.0
// Makes a workspace: folder, environment, what the user wants set up in it, first snapshot, its name.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "control/workspace_backup.h"
#include "control/workspace_open.h"

namespace overcap {

struct WorkspaceCreateRequest {
  std::string name;
  std::string at;  // as written: absolute, perhaps behind ~ or variables
  std::string env = "none";
  std::vector<std::string> setup;  // a line each: words, no shell
  std::string store;               // "": the usual place
  std::string key_file;            // as written; made when it is missing; "": none
  bool passphrase = false;
  std::vector<std::string> exclude;
  bool adopt = false;  // what is in the folder already becomes the workspace
  WorkspaceBackupOptions backup;
  std::function<void(const std::string& step)> tell;  // what happens now, for a person; may be empty
};

struct WorkspaceCreated {
  FoundWorkspace found;
  WorkspaceBackup first;
};

// All of it or nothing: after an error whatever was made is gone again. kConflict: the name is taken, or the
// folder is not empty.
Result<WorkspaceCreated> CreateWorkspace(const WorkspaceWorld& world, const WorkspaceCreateRequest& request);

// Registers a workspace whose snapshots are in `store` but that no root of ours knows. kNotFound when that
// repository has none of this name.
Result<FoundWorkspace> RegisterWorkspace(const WorkspaceWorld& world, const WorkspaceCreateRequest& request);

// The variables of the world as `.overcap/activate` would make them.
Variables WorkspaceVariables(const WorkspaceWorld& world, const Workspace& workspace,
                             const std::string& folder);

}  // namespace overcap
