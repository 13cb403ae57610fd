// SPDX-License-Identifier: Apache-2.0
#include "control/workspace_tar.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <thread>
#include <unistd.h>

#include "base/text.h"
#include "control/workspace_repository.h"
#include "sys/fd.h"

namespace overcap {
namespace {

TarImportRequest RequestFor(const WorkspaceWorld& world, const WorkspaceImportRequest& request,
                            const std::string& folder) {
  TarImportRequest import = request.import;
  import.name = request.tar;
  import.workspace = request.workspace.name;
  import.host = world.host;
  import.user = world.user;
  import.folder = folder;
  import.uid = geteuid();
  import.gid = getegid();
  import.threads = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 8u));
  if (import.message.empty())
    import.message = StrCat("imported from ", request.tar == "-" ? "a tar" : request.tar);
  return import;
}

Result<Fd> OpenTar(const std::string& path) {
  if (path == "-") return Fd(dup(STDIN_FILENO));
  Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd) return Fail(ErrnoError(errno, StrCat("cannot open '", path, "'")));
  return fd;
}

Result<void> CheckFree(const WorkspaceWorld& world, const std::string& name) {
  OC_TRY_VOID(ValidWorkspaceName(name));
  for (const std::string& root : world.roots) {
    const auto taken = WorkspaceBook(root).Find(name);
    if (!taken && taken.error().code == ErrorCode::kNotFound) continue;
    if (!taken) return Fail(taken.error());
    return Fail(ErrorCode::kConflict, StrCat("there is a workspace '", name, "' already"),
                "--add makes it the newest snapshot of that; --name gives it another name");
  }
  return {};
}

// A passphrase is asked for once.
WorkspaceWorld AskingOnce(const WorkspaceWorld& world) {
  WorkspaceWorld once = world;
  if (!world.ask_secret) return once;
  once.ask_secret = [ask = world.ask_secret, known = std::make_shared<std::string>()](
                        const std::string& prompt) -> Result<std::string> {
    if (!known->empty()) return *known;
    OC_TRY(secret, ask(prompt));
    *known = secret;
    return secret;
  };
  return once;
}

Result<WorkspaceImport> ImportNew(const WorkspaceWorld& asking, const WorkspaceImportRequest& request,
                                  ByteSource& source) {
  const WorkspaceWorld world = AskingOnce(asking);
  WorkspaceCreateRequest wanted = request.workspace;
  OC_TRY_VOID(CheckFree(world, wanted.name));
  OC_TRY(folder, ExpandHere(world, wanted.at));
  Workspace workspace;
  workspace.name = wanted.name;
  workspace.root = world.roots.at(0);
  OC_TRY(opened,
         NewRepository::Open(
             world, {.store = wanted.store, .key_file = wanted.key_file, .passphrase = wanted.passphrase},
             &workspace));
  OC_TRY(before, opened.repository().Snapshots(wanted.name));
  if (!before.empty()) {
    return Fail(ErrorCode::kConflict,
                StrCat("'", workspace.store, "' has snapshots of a workspace '", wanted.name,
                       "' that is not known here"),
                "another name makes a new one");
  }
  OC_TRY(report, ImportTar(opened.repository(), source, RequestFor(world, request, folder)));
  // Where the repository was made is where it is found again.
  if (workspace.secret == WorkspaceSecret::kNone) wanted.store = workspace.store;
  auto found = RegisterWorkspace(world, wanted);
  if (!found) {
    (void)opened.repository().Forget(report.snapshot);
    return Fail(found.error());
  }
  opened.Keep();
  return WorkspaceImport{std::move(*found), std::move(report)};
}

Result<WorkspaceImport> ImportMore(const WorkspaceWorld& world, const WorkspaceImportRequest& request,
                                   ByteSource& source) {
  OC_TRY(found, FindWorkspace(world, request.workspace.name));
  OC_TRY(repository, OpenRepositoryOf(world, found.workspace));
  OC_TRY(report, ImportTar(repository, source, RequestFor(world, request, found.folder)));
  return WorkspaceImport{std::move(found), std::move(report)};
}

}  // namespace

Result<WorkspaceImport> ImportWorkspace(const WorkspaceWorld& world, const WorkspaceImportRequest& request) {
  OC_TRY(fd, OpenTar(request.tar));
  FdSource source(fd.Get(), request.tar);
  return request.add ? ImportMore(world, request, source) : ImportNew(world, request, source);
}

}  // namespace overcap
