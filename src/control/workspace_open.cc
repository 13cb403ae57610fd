// SPDX-License-Identifier: Apache-2.0
#include "control/workspace_open.h"

#include <algorithm>

#include "base/text.h"
#include "control/expand_folder.h"
#include "control/stores/open_store.h"
#include "snapshot/restore/resume_marker.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

constexpr int64_t kMostKeyBytes = 65536;
constexpr std::string_view kPassphraseFile = "OVERCAP_PASSPHRASE_FILE";

std::string InitHint(const Workspace& workspace) {
  return StrCat("'overcap workspace init ", workspace.name, "' brings it here");
}

Result<Workspace> TheOnlyOne(const WorkspaceWorld& world) {
  std::vector<std::string> names;
  for (const std::string& root : world.roots) {
    for (std::string& name : WorkspaceBook(root).Names()) names.push_back(std::move(name));
  }
  if (names.empty()) {
    return Fail(ErrorCode::kNotFound, "there is no workspace yet", "'overcap workspace create' makes one");
  }
  if (names.size() > 1) {
    return Fail(ErrorCode::kUsage, StrCat("which workspace? there are ", Join(names, ", ")),
                "name one, or cd into its folder");
  }
  return FindRegistered(world, names[0]);
}

// Of a folder whose own file is damaged: nothing is known of its base. A restore that was cut off left its
// mark.
void TakeDamaged(const Error& error, FoundWorkspace* found) {
  WorkspaceCopy copy{found->workspace.name, found->workspace.id, found->workspace.root, "", "", "", ""};
  const auto text = PosixFiles().Read(ResumeMarkerPath(SeenFileOf(found->folder)));
  if (const auto marker = text ? ResumeMarker::Decode(*text) : std::nullopt) {
    copy.restoring = "unknown";
    copy.restoring_tree = marker->tree.Hex();
  }
  found->copy = std::move(copy);
  found->problem = error.message;
}

// The workspace whose folder this is on this host, by what is registered.
Result<FoundWorkspace> RegisteredAt(const WorkspaceWorld& world, const std::string& folder,
                                    const Error& error) {
  for (Workspace& workspace : AllWorkspaces(world, nullptr)) {
    const auto place = WorkspaceBook(workspace.root).FindPlace(workspace.name, world.host);
    const auto at = ExpandHere(world, workspace.at);
    if (place ? place->folder != folder : !at || *at != folder) continue;
    FoundWorkspace found{std::move(workspace), folder, std::nullopt};
    TakeDamaged(error, &found);
    return found;
  }
  return Fail(error.code, error.message,
              "'overcap workspace init NAME --at DIR' brings the workspace to another folder");
}

// The workspace that a folder says it is.
Result<FoundWorkspace> FoundIn(const WorkspaceWorld& world, const std::string& folder) {
  auto read = ReadWorkspaceCopy(folder);
  if (!read && read.error().code == ErrorCode::kCorrupt) return RegisteredAt(world, folder, read.error());
  if (!read) return Fail(read.error());
  WorkspaceCopy& copy = *read;
  auto workspace = copy.root.empty() ? FindRegistered(world, copy.workspace)
                                     : WorkspaceBook(copy.root).Find(copy.workspace);
  if (!workspace && workspace.error().code == ErrorCode::kNotFound && !copy.root.empty()) {
    workspace = FindRegistered(world, copy.workspace);
  }
  if (!workspace) {
    return Fail(workspace.error().code,
                StrCat("'", folder, "' is the workspace '", copy.workspace, "': ", workspace.error().message),
                workspace.error().hint);
  }
  if (workspace->id != copy.id) {
    return Fail(ErrorCode::kConflict,
                StrCat("'", folder, "' is of another workspace that was also called '", copy.workspace, "'"),
                StrCat("remove '", LocalFolderOf(folder),
                       "' and make it a new one with 'overcap workspace create --adopt'"));
  }
  return FoundWorkspace{std::move(*workspace), folder, std::move(copy)};
}

// Where init has put it on this host, if it is still there.
std::optional<std::string> NotedFolder(const WorkspaceWorld& world, const Workspace& workspace) {
  const auto place = WorkspaceBook(workspace.root).FindPlace(workspace.name, world.host);
  if (!place) return std::nullopt;
  const auto copy = ReadWorkspaceCopy(place->folder);
  if (!copy && copy.error().code == ErrorCode::kCorrupt) return place->folder;
  if (!copy || copy->id != workspace.id) return std::nullopt;
  return place->folder;
}

}  // namespace

Result<Workspace> FindRegistered(const WorkspaceWorld& world, std::string_view name) {
  Result<Workspace> found = Fail(ErrorCode::kNotFound, StrCat("there is no workspace '", name, "'"));
  for (const std::string& root : world.roots) {
    auto here = WorkspaceBook(root).Find(name);
    if (here || here.error().code != ErrorCode::kNotFound) return here;
    if (found.error().hint.empty()) found = std::move(here);
  }
  return found;
}

Result<std::string> ExpandHere(const WorkspaceWorld& world, const std::string& path) {
  Variables variables = world.variables;
  if (variables.Get("USER").empty()) variables.Set("USER", world.user);
  return ExpandFolder(path, variables);
}

Result<FoundWorkspace> FindWorkspace(const WorkspaceWorld& world, std::string_view name) {
  const std::string inside = world.folder.empty() ? "" : WorkspaceAbove(world.folder);
  if (name.empty() && !inside.empty()) return FoundIn(world, inside);
  auto workspace = name.empty() ? TheOnlyOne(world) : FindRegistered(world, name);
  if (!workspace) return Fail(workspace.error());
  if (!inside.empty()) {  // a second copy of the same workspace: the one in which we are is meant
    const auto copy = ReadWorkspaceCopy(inside);
    if (copy && copy->id == workspace->id) return FoundIn(world, inside);
  }
  FoundWorkspace found{std::move(*workspace), "", std::nullopt};
  if (auto noted = NotedFolder(world, found.workspace)) {
    found.folder = std::move(*noted);
  } else {
    OC_TRY(folder, ExpandHere(world, found.workspace.at));
    found.folder = std::move(folder);
  }
  auto copy = ReadWorkspaceCopy(found.folder);
  if (!copy && copy.error().code == ErrorCode::kCorrupt) {
    TakeDamaged(copy.error(), &found);
    return found;
  }
  if (!copy && copy.error().code != ErrorCode::kNotFound) return Fail(copy.error());
  if (copy && copy->id != found.workspace.id) {
    return Fail(ErrorCode::kConflict,
                StrCat("'", found.folder, "' is another workspace, '", copy->workspace, "'"),
                "'overcap workspace init --at DIR' puts it elsewhere");
  }
  if (copy) found.copy = std::move(*copy);
  return found;
}

Result<FoundWorkspace> FindWorkspaceHere(const WorkspaceWorld& world, std::string_view name) {
  OC_TRY(found, FindWorkspace(world, name));
  if (!found.copy && PosixFiles().Exists(found.folder)) {
    return Fail(ErrorCode::kNotFound,
                StrCat("'", found.folder,
                       "' is there, but without '.overcap/workspace.json', which says that it is "
                       "workspace '",
                       found.workspace.name, "'"),
                StrCat("'overcap workspace init ", found.workspace.name,
                       " --at DIR' brings it to another folder, init --force here over what is there"));
  }
  if (!found.copy) {
    return Fail(ErrorCode::kNotFound,
                StrCat("workspace '", found.workspace.name, "' is not on this node: no '", found.folder, "'"),
                InitHint(found.workspace));
  }
  if (!found.copy->restoring.empty()) {
    return Fail(
        ErrorCode::kConflict,
        StrCat("workspace '", found.workspace.name, "' is only restored in part: '", found.folder, "'"),
        StrCat("'overcap workspace init ", found.workspace.name,
               "' goes on with it and names what is in its way; with --force it does without that"));
  }
  return found;
}

std::vector<Workspace> AllWorkspaces(const WorkspaceWorld& world, std::vector<Error>* problems) {
  std::vector<Workspace> all;
  for (const std::string& root : world.roots) {
    const WorkspaceBook book(root);
    for (const std::string& name : book.Names()) {
      auto workspace = book.Find(name);
      if (workspace) {
        all.push_back(std::move(*workspace));
      } else if (problems != nullptr) {
        problems->push_back(workspace.error());
      }
    }
  }
  return all;
}

Result<std::string> ReadKeyFile(const std::string& path) {
  auto bytes = PosixFiles().ReadRange(path, 0, kMostKeyBytes + 1);
  if (!bytes) return Fail(ErrorCode::kDenied, StrCat("the key file cannot be read: ", bytes.error().message));
  if (bytes->empty()) return Fail(ErrorCode::kDenied, StrCat("the key file '", path, "' is empty"));
  if (bytes->size() > static_cast<size_t>(kMostKeyBytes))
    return Fail(ErrorCode::kDenied, StrCat("'", path, "' is too long for a key file"));
  return bytes;
}

Result<std::string> GetPassphrase(const WorkspaceWorld& world, const std::string& prompt, bool again) {
  if (const std::string file(world.variables.Get(kPassphraseFile)); !file.empty()) {
    OC_TRY(bytes, ReadKeyFile(file));
    while (!bytes.empty() && (bytes.back() == '\n' || bytes.back() == '\r')) bytes.pop_back();
    if (bytes.empty()) return Fail(ErrorCode::kDenied, StrCat("the passphrase in '", file, "' is empty"));
    return bytes;
  }
  if (!world.ask_secret) {
    return Fail(ErrorCode::kDenied, "a passphrase is needed, and nobody can be asked",
                StrCat("put it into a file that only you can read, and its path into ", kPassphraseFile));
  }
  OC_TRY(typed, world.ask_secret(prompt + ": "));
  if (typed.empty()) return Fail(ErrorCode::kDenied, "no passphrase was given");
  if (!again) return typed;
  OC_TRY(second, world.ask_secret("the same again: "));
  if (typed != second) return Fail(ErrorCode::kDenied, "the two passphrases differ");
  return typed;
}

Result<std::string> SecretOf(const WorkspaceWorld& world, const Workspace& workspace) {
  switch (workspace.secret) {
    case WorkspaceSecret::kNone:
      return std::string();
    case WorkspaceSecret::kKeyFile: {
      OC_TRY(path, ExpandHere(world, workspace.key_file));
      return ReadKeyFile(path);
    }
    case WorkspaceSecret::kPassphrase:
      return GetPassphrase(world, StrCat("passphrase of workspace '", workspace.name, "'"), false);
  }
  return Fail(ErrorCode::kInternal, "a kind of secret that nobody knows");
}

Result<std::unique_ptr<Store>> OpenStoreFor(const WorkspaceWorld& world, const std::string& location,
                                            bool create) {
  return OpenStoreAt({world.stores, world.variables, world.folder}, location, create);
}

Result<Repository> OpenRepositoryOf(const WorkspaceWorld& world, const Workspace& workspace) {
  auto store = OpenStoreFor(world, workspace.store, false);
  if (!store) {
    return Fail(store.error().code,
                StrCat("the repository of workspace '", workspace.name, "': ", store.error().message),
                store.error().hint.empty() ? "is its file system there on this node?" : store.error().hint);
  }
  OC_TRY(secret, SecretOf(world, workspace));
  return Repository::Open({.store = std::move(*store), .clock = world.clock, .random = world.random}, secret);
}

Result<void> NoteEqual(const WorkspaceWorld& world, const FoundWorkspace& found,
                       const NamedSnapshot& snapshot) {
  WorkspaceCopy copy{found.workspace.name,
                     found.workspace.id,
                     found.workspace.root,
                     snapshot.Id(),
                     snapshot.record.tree.Hex(),
                     "",
                     ""};
  if (found.copy != copy) OC_TRY_VOID(WriteWorkspaceCopy(found.folder, copy));
  WorkspaceBook(found.workspace.root)
      .NotePlace(found.workspace.name, {world.host, found.folder, snapshot.Id(), world.clock->WallUs()});
  return {};
}

}  // namespace overcap
