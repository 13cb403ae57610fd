// SPDX-License-Identifier: Apache-2.0
#include "control/workspace_restore.h"

#include <algorithm>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "control/usable_folders.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

constexpr std::string_view kBackupHint = "'overcap workspace backup' saves them first; --force gives them up";

RestoreRequest RequestFor(const Digest& tree, const std::string& target,
                          const WorkspaceRestoreOptions& options) {
  RestoreRequest request;
  request.tree = tree;
  request.target = target;
  request.owners = geteuid() == 0;
  request.progress = options.progress;
  request.stop = options.stop;
  return request;
}

// Entries beside our own; kNotFound: there is no such folder.
Result<bool> HoldsSomething(const std::string& folder) {
  OC_TRY(names, PosixFiles().List(folder));
  for (const std::string& name : names) {
    if (name != ".overcap") return true;
  }
  return false;
}

tl::unexpected<Error> WouldLose(const FoundWorkspace& found, const NamedSnapshot& snapshot,
                                const LocalChanges& changes) {
  const auto count = static_cast<int64_t>(changes.changes.size());
  if (!changes.known) {
    const bool gone = found.copy && !found.copy->base.empty();
    return Fail(ErrorCode::kConflict,
                StrCat(gone ? "the snapshot that '" : "it is not known which snapshot '", found.folder,
                       gone ? "' came from is gone, and " : "' came from, and ", count,
                       count == 1 ? " entry differs" : " entries differ", " from ", snapshot.ShortId(), ": ",
                       SomeOf(changes.changes)),
                std::string(kBackupHint));
  }
  return Fail(
      ErrorCode::kConflict,
      StrCat(CountOf(count, "change"), " in '", found.folder, "' would be lost: ", SomeOf(changes.changes)),
      std::string(kBackupHint));
}

// What a restore leaves alone of what it finds.
struct Respect {
  int64_t looked_ns = 0;  // these are of RestoreRequest
  std::vector<std::string> keep = {};
  bool keep_foreign = false;
};

std::vector<std::string> PathsOf(const LocalChanges& changes) {
  std::vector<std::string> paths;
  for (const FolderDifference& change : changes.changes) paths.push_back(change.path);
  return paths;
}

// The whole folder becomes the snapshot; a crash is seen by the mark and continued by the next init. Where
// something could not be restored the mark stays, too, unless all of it is newer work that was kept.
Result<RestoreReport> RestoreWhole(const WorkspaceWorld& world, const FoundWorkspace& found,
                                   const Repository& repository, const NamedSnapshot& snapshot,
                                   bool remove_extra, std::optional<FolderLook>* look, Respect respect,
                                   const WorkspaceRestoreOptions& options) {
  WorkspaceCopy marked = found.copy.value_or(WorkspaceCopy{});
  marked.workspace = found.workspace.name;
  marked.id = found.workspace.id;
  marked.root = found.workspace.root;
  marked.restoring = snapshot.Id();
  marked.restoring_tree = snapshot.record.tree.Hex();
  OC_TRY_VOID(WriteWorkspaceCopy(found.folder, marked));
  RestoreRequest request = RequestFor(snapshot.record.tree, found.folder, options);
  request.seen_file = SeenFileOf(found.folder);
  request.remove_extra = remove_extra;
  request.exclude = found.workspace.exclude;
  request.look = look->has_value() ? &**look : nullptr;
  request.looked_ns = options.force ? 0 : respect.looked_ns;
  request.keep = std::move(respect.keep);
  request.keep_foreign = respect.keep_foreign;
  OC_TRY(report, Restore(repository, request));
  FoundWorkspace now = found;
  now.copy = marked;
  OC_TRY_VOID(WriteActivate(found.workspace, found.folder));
  if (report.failed == report.kept || options.force) OC_TRY_VOID(NoteEqual(world, now, snapshot));
  return report;
}

// The copy that `folder` has of the workspace, or none when it is free for one.
Result<void> TakeFolder(const std::string& folder, bool force, FoundWorkspace* found) {
  found->folder = folder;
  found->copy.reset();
  auto copy = ReadWorkspaceCopy(folder);
  if (copy) {
    if (copy->id != found->workspace.id) {
      return Fail(ErrorCode::kConflict,
                  StrCat("'", folder, "' is another workspace, '", copy->workspace, "'"),
                  "--at DIR names another folder");
    }
    found->copy = std::move(*copy);
    return {};
  }
  if (copy.error().code != ErrorCode::kNotFound && copy.error().code != ErrorCode::kCorrupt)
    return Fail(copy.error());
  const auto something = HoldsSomething(folder);
  if (!something && something.error().code != ErrorCode::kNotFound) return Fail(something.error());
  if (something && *something && !force) {
    return Fail(ErrorCode::kConflict, StrCat("'", folder, "' is not empty, and not this workspace"),
                "--at DIR names another folder; --force restores over what is there");
  }
  return {};
}

// After a restore that failed before it had brought anything. Where it has, or was stopped, it is to go on.
void LeaveNothing(const std::string& folder, const std::string& made,
                  const WorkspaceRestoreOptions& options) {
  if (options.stop != nullptr && *options.stop) return;
  const auto something = HoldsSomething(folder);
  if (something && !*something) (void)PosixFiles().RemoveTree(made.empty() ? LocalFolderOf(folder) : made);
}

// Not the name of the folder that a restore itself makes there (StagingFolder) and removes.
std::string RestoreMark(const std::string& target) {
  return target + "/.overcap/unfinished";
}

// And its folder, when nothing else is in it; the target keeps the time that the snapshot says.
void RemoveMark(const std::string& target) {
  struct stat info {};
  const bool known = stat(target.c_str(), &info) == 0;
  (void)PosixFiles().Remove(RestoreMark(target));
  if (rmdir((target + "/.overcap").c_str()) != 0 || !known) return;
  const timespec times[2] = {info.st_atim, info.st_mtim};
  (void)utimensat(AT_FDCWD, target.c_str(), times, 0);
}

// Whether a restore of the same may go on there.
Result<void> CheckTarget(const std::string& target, const Digest& tree, bool force) {
  const auto something = HoldsSomething(target);
  if (!something && something.error().code == ErrorCode::kNotFound) return {};
  if (!something) return Fail(something.error());
  if (!*something || force) return {};
  const auto mark = PosixFiles().Read(RestoreMark(target));
  if (mark && Trim(*mark) == tree.Hex()) return {};
  return Fail(ErrorCode::kConflict, StrCat("'", target, "' is not empty"),
              "--to names another folder; --force restores over what is there");
}

// Whether a restore of `paths` (all when empty) changes it: what is at or below one of them and in the way,
// and what stands on the way to one where a folder should be. What only the folder has stays there.
bool WouldReplace(const std::string& folder, const FolderDifference& difference,
                  const std::vector<std::string>& paths) {
  if (paths.empty()) return true;
  if (difference.what != '~') return false;
  if (IsWanted(difference.path, paths)) return true;
  struct stat status {};
  const bool is_folder =
      lstat(StrCat(folder, "/", difference.path).c_str(), &status) == 0 && S_ISDIR(status.st_mode);
  return !is_folder && std::ranges::any_of(paths, [&](const std::string& wanted) {
    return wanted.starts_with(difference.path + "/");
  });
}

// When the mark was written, by the clock of its file system.
int64_t ChangedNs(const std::string& path) {
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) return 1;  // then all that is there counts as new
  return status.st_ctim.tv_sec * 1'000'000'000LL + status.st_ctim.tv_nsec;
}

}  // namespace

bool IsWanted(std::string_view path, const std::vector<std::string>& paths) {
  if (paths.empty()) return true;
  for (const std::string& wanted : paths) {
    if (path == wanted ||
        (path.starts_with(wanted) && path.size() > wanted.size() && path[wanted.size()] == '/'))
      return true;
  }
  return false;
}

Result<WorkspaceInit> InitWorkspace(const WorkspaceWorld& world, FoundWorkspace found,
                                    const Repository& repository, const std::string& folder,
                                    const WorkspaceRestoreOptions& options) {
  if (!folder.empty() && folder != found.folder) OC_TRY_VOID(TakeFolder(folder, options.force, &found));
  if (!found.copy) OC_TRY_VOID(TakeFolder(found.folder, options.force, &found));
  OC_TRY(newest, repository.Find(found.workspace.name, "latest"));
  std::string made;
  OC_TRY_VOID(MakeWorkFolder(found.folder, world.user, std::string(world.variables.Get("TMPDIR")), &made));
  OC_TRY(lock, LockWorkspace(found.folder, "overcap workspace init", *world.clock));
  WorkspaceInit init;
  init.folder = found.folder;
  init.snapshot = newest;
  const bool was_ours = found.copy.has_value();
  Respect respect{.looked_ns = LockedNs(lock)};
  // A folder that was empty before we had the lock may have got something since.
  respect.keep_foreign = !was_ours && !options.force;
  std::optional<FolderLook> look;
  if (was_ours && !options.force) {
    OC_TRY(changes, FindLocalChanges(found, repository, newest.record.tree, &look));
    const bool whole = found.copy->restoring.empty() && found.copy->base == newest.Id();
    if (whole) {
      init.outcome = changes.None() ? InitOutcome::kHasNewest : InitOutcome::kHasChanges;
      init.changes = std::move(changes);
      OC_TRY_VOID(WriteActivate(found.workspace, found.folder));
      return init;
    }
    // Where a restore was cut off it goes on around them: a backup has to wait for its end.
    if (!changes.None() && found.copy->restoring.empty()) return WouldLose(found, newest, changes);
    respect.keep = PathsOf(changes);
  }
  auto report = RestoreWhole(world, found, repository, newest, was_ours, &look, std::move(respect), options);
  if (!report) {
    if (!was_ours) LeaveNothing(found.folder, made, options);
    return Fail(report.error());
  }
  init.report = std::move(*report);
  return init;
}

Result<RestoreReport> RestoreInPlace(const WorkspaceWorld& world, const FoundWorkspace& found,
                                     const Repository& repository, const NamedSnapshot& snapshot,
                                     const std::vector<std::string>& paths,
                                     const WorkspaceRestoreOptions& options) {
  OC_TRY(lock, LockWorkspace(found.folder, "overcap workspace restore", *world.clock));
  std::optional<FolderLook> look;
  if (!options.force) {
    OC_TRY(changes, FindLocalChanges(found, repository, snapshot.record.tree, &look));
    std::erase_if(changes.changes, [&](const FolderDifference& difference) {
      return !WouldReplace(found.folder, difference, paths);
    });
    if (!changes.None()) return WouldLose(found, snapshot, changes);
  }
  const int64_t looked_ns = LockedNs(lock);
  if (paths.empty())
    return RestoreWhole(world, found, repository, snapshot, true, &look, {.looked_ns = looked_ns}, options);
  RestoreRequest request = RequestFor(snapshot.record.tree, found.folder, options);
  request.paths = paths;
  request.exclude = found.workspace.exclude;
  request.looked_ns = options.force ? 0 : looked_ns;
  return Restore(repository, request);
}

Result<RestoreReport> RestoreElsewhere(const Repository& repository, const NamedSnapshot& snapshot,
                                       const std::vector<std::string>& paths, const std::string& target,
                                       const WorkspaceRestoreOptions& options) {
  const Digest& tree = snapshot.record.tree;
  OC_TRY_VOID(CheckTarget(target, tree, options.force));
  PosixFiles files;
  const std::string made = files.Exists(target) ? "" : target;
  OC_TRY_VOID(files.MakeFolders(target + "/.overcap"));
  OC_TRY_VOID(files.WriteAtomic(RestoreMark(target), tree.Hex() + "\n", false));
  RestoreRequest request = RequestFor(tree, target, options);
  request.paths = paths;
  request.looked_ns = options.force ? 0 : ChangedNs(RestoreMark(target));
  request.keep_foreign = !options.force;
  auto report = Restore(repository, request);
  if (report) {
    RemoveMark(target);
  } else {
    LeaveNothing(target, made, options);
  }
  return report;
}

}  // namespace overcap
