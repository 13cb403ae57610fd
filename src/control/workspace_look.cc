// SPDX-License-Identifier: Apache-2.0
#include "control/workspace_look.h"

#include <algorithm>

#include "base/text.h"
#include "snapshot/format/snapshot_record.h"

namespace overcap {
namespace {

Result<void> CountSnapshots(const WorkspaceWorld& world, WorkspaceGlance* glance) {
  OC_TRY(store, OpenStoreFor(world, glance->workspace.store, false));
  OC_TRY(objects, store->ListAll(StrCat("snapshots/", glance->workspace.name, "/")));
  for (const StoredObjectInfo& object : objects) {
    const auto key = ParseSnapshotKey(object.key);
    if (!key) continue;
    ++glance->snapshots;
    glance->newest_us = std::max(glance->newest_us, key->time_us);
  }
  return {};
}

CompareReport ReportOf(LocalChanges changes) {
  CompareReport report;
  for (const FolderDifference& change : changes.changes)
    ++(change.what == '+' ? report.added : change.what == '-' ? report.removed : report.changed);
  report.newest_mtime_ns = changes.newest_mtime_ns;
  report.differences = std::move(changes.changes);
  return report;
}

}  // namespace

std::vector<WorkspaceGlance> GlanceAtWorkspaces(const WorkspaceWorld& world, std::vector<Error>* problems) {
  std::vector<WorkspaceGlance> glances;
  for (Workspace& workspace : AllWorkspaces(world, problems)) {
    WorkspaceGlance glance;
    glance.workspace = std::move(workspace);
    auto found = FindWorkspace(world, glance.workspace.name);
    if (found) {
      glance.folder = found->folder;
      glance.here = found->copy.has_value();
    } else {
      glance.folder = glance.workspace.at;
      glance.problem = found.error().message;
    }
    if (const auto counted = CountSnapshots(world, &glance); !counted)
      glance.problem = counted.error().message;
    glances.push_back(std::move(glance));
  }
  return glances;
}

Result<WorkspaceStatus> LookAtWorkspace(const FoundWorkspace& found, const Repository& repository) {
  WorkspaceStatus status;
  status.found = found;
  status.places = WorkspaceBook(found.workspace.root).Places(found.workspace.name);
  OC_TRY(snapshots, repository.Snapshots(found.workspace.name));
  status.snapshots = static_cast<int64_t>(snapshots.size());
  if (!snapshots.empty()) status.newest = snapshots.back();
  if (!found.copy) return status;
  status.busy = WorkspaceLockHolder(found.folder);
  for (const NamedSnapshot& snapshot : snapshots) {
    if (snapshot.Id() == found.copy->base) status.base = snapshot;
  }
  const bool in_part = !found.copy->restoring.empty();
  OC_TRY(kept, BaseIsKept(found, repository));
  status.base_gone = !kept && !found.copy->base.empty();
  auto target = Digest::FromHex(in_part ? found.copy->restoring_tree : found.copy->base_tree);
  if (!kept && !in_part && status.newest) target = status.newest->record.tree;
  if (!target) return status;
  auto changes = FindLocalChanges(found, repository, *target);
  if (changes) {
    status.changes = ReportOf(std::move(*changes));
  } else {
    status.problem = changes.error().message;
  }
  return status;
}

}  // namespace overcap
