// SPDX-License-Identifier: Apache-2.0
#include "control/workspace_backup.h"

#include "sys/posix_files.h"

namespace overcap {
namespace {

BackupRequest RequestFor(const WorkspaceWorld& world, const FoundWorkspace& found,
                         const WorkspaceBackupOptions& options) {
  BackupRequest request;
  request.folder = found.folder;
  request.workspace = found.workspace.name;
  request.host = world.host;
  request.user = world.user;
  request.message = options.message;
  request.write_unchanged = !options.message.empty();  // who gives words wants to find them
  request.seen_file = SeenFileOf(found.folder);
  request.exclude = found.workspace.exclude;
  request.progress = options.progress;
  request.stop = options.stop;
  return request;
}

}  // namespace

Result<WorkspaceBackup> BackUpLocked(const WorkspaceWorld& world, const FoundWorkspace& found,
                                     const Repository& repository, const WorkspaceBackupOptions& options) {
  if (options.read_all) OC_TRY_VOID(PosixFiles().Remove(SeenFileOf(found.folder)));
  OC_TRY(report, Backup(repository, RequestFor(world, found, options)));
  WorkspaceBackup backup{std::move(report), std::nullopt};
  const auto& parent = backup.report.parent;
  const std::string base = found.copy ? found.copy->base : "";
  if (backup.report.snapshot && parent && !base.empty() && parent->Id() != base) backup.overtaken = parent;
  if (!backup.report.snapshot && !parent)
    return Fail(ErrorCode::kInternal, "a backup has made no snapshot, and there is none");
  OC_TRY_VOID(NoteEqual(world, found, backup.Newest()));
  return backup;
}

Result<WorkspaceBackup> BackUpWorkspace(const WorkspaceWorld& world, const FoundWorkspace& found,
                                        const Repository& repository, const WorkspaceBackupOptions& options) {
  OC_TRY(lock, LockWorkspace(found.folder, options.who, *world.clock));
  // What the folder is may have changed until we had the lock.
  OC_TRY(now, FindWorkspaceHere(world, found.workspace.name));
  FoundWorkspace locked = found;
  if (now.folder == found.folder) locked.copy = now.copy;
  return BackUpLocked(world, locked, repository, options);
}

}  // namespace overcap
