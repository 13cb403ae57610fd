// SPDX-License-Identifier: Apache-2.0
// From what a user says to a workspace: which one, where its folder is, its repository opened.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "control/stores/store_entry.h"
#include "control/workspace.h"
#include "control/workspace_folder.h"
#include "snapshot/repository/repository.h"
#include "sys/clock.h"
#include "sys/random.h"
#include "sys/variables.h"

namespace overcap {

// What all use cases of workspaces stand on. The pointers stay the caller's.
struct WorkspaceWorld {
  std::vector<std::string> roots;  // where workspaces are registered; new ones in the first
  std::string folder;              // the current one; "": it does not exist any more
  std::string user;
  std::string host;
  Variables variables;
  StoreEntries stores = {};  // `stores:` of the configuration
  const Clock* clock = nullptr;
  Random* random = nullptr;
  // Asks a person, without echo. Empty: nobody is there; a passphrase then comes from
  // $OVERCAP_PASSPHRASE_FILE only.
  std::function<Result<std::string>(const std::string& prompt)> ask_secret;
};

struct FoundWorkspace {
  Workspace workspace;
  std::string folder;                 // where it is on this host, or would be
  std::optional<WorkspaceCopy> copy;  // nullopt: it is not there (yet)
  // Why the folder's own file cannot be believed; `copy` then has no base. Only what needs one is affected.
  std::string problem = {};
};

// `name` "": the workspace in whose folder we are, else the only one there is. kNotFound; kUsage when several
// could be meant; kConflict when the folder is another workspace's.
Result<FoundWorkspace> FindWorkspace(const WorkspaceWorld& world, std::string_view name);
// The same, but the folder must be there and whole: kNotFound with what to type when it is not, kConflict
// while a restore of it has not ended.
Result<FoundWorkspace> FindWorkspaceHere(const WorkspaceWorld& world, std::string_view name);

// Only what is registered, wherever its folder is. kNotFound.
Result<Workspace> FindRegistered(const WorkspaceWorld& world, std::string_view name);

// Every workspace of every root; files that cannot be read are named in `problems` (may be null).
std::vector<Workspace> AllWorkspaces(const WorkspaceWorld& world, std::vector<Error>* problems);

// `at` of the workspace on this host. $USER is that of the world where the environment has none.
Result<std::string> ExpandHere(const WorkspaceWorld& world, const std::string& path);

// The store at `location`, as workspace.json or a user says it. Errors as control/stores/open_store.h.
Result<std::unique_ptr<Store>> OpenStoreFor(const WorkspaceWorld& world, const std::string& location,
                                            bool create);

// What opens the repository; "" when it is not encrypted. kDenied, naming the key file, when that cannot be
// read.
Result<std::string> SecretOf(const WorkspaceWorld& world, const Workspace& workspace);
// The bytes of a key file. kDenied when it cannot be read or is empty.
Result<std::string> ReadKeyFile(const std::string& path);
// Of $OVERCAP_PASSPHRASE_FILE, else asked for; `again`: twice, for a new one.
Result<std::string> GetPassphrase(const WorkspaceWorld& world, const std::string& prompt, bool again);

// kNotFound when it is gone, kDenied for a wrong secret, kConflict for a newer format.
Result<Repository> OpenRepositoryOf(const WorkspaceWorld& world, const Workspace& workspace);

// After a backup or a restore: the folder is equal to this snapshot.
Result<void> NoteEqual(const WorkspaceWorld& world, const FoundWorkspace& found,
                       const NamedSnapshot& snapshot);

}  // namespace overcap
