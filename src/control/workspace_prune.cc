// SPDX-License-Identifier: Apache-2.0
#include "control/workspace_prune.h"

#include <algorithm>

#include "base/text.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

// The shared repository of a root may have lost its last workspace and still hold its packs.
std::vector<Workspace> OnePerStore(const WorkspaceWorld& world) {
  std::vector<Workspace> chosen;
  const auto known = [&](const std::string& store) {
    return std::ranges::any_of(chosen, [&](const Workspace& other) { return other.store == store; });
  };
  for (Workspace& workspace : AllWorkspaces(world, nullptr)) {
    if (!known(workspace.store)) chosen.push_back(std::move(workspace));
  }
  for (const std::string& root : world.roots) {
    Workspace shared;
    shared.store = SharedRepositoryOf(root);
    if (!known(shared.store) && PosixFiles().Exists(shared.store + "/config")) chosen.push_back(shared);
  }
  return chosen;
}

// What a folder somewhere came from, or was last saved as, is what tells its unsaved work from the rest.
void KeepWhatCopiesStandOn(const Workspace& workspace, std::vector<KeptSnapshot>* snapshots) {
  for (const WorkspacePlace& place : WorkspaceBook(workspace.root).Places(workspace.name)) {
    for (KeptSnapshot& kept : *snapshots) {
      if (kept.snapshot.Id() == place.snapshot) kept.reasons.push_back(StrCat("on ", place.host));
    }
  }
}

}  // namespace

KeepRules KeepRulesOf(const Config::Workspaces::Keep& keep) {
  return {.last = keep.last,
          .hourly = keep.hourly,
          .daily = keep.daily,
          .weekly = keep.weekly,
          .monthly = keep.monthly,
          .yearly = keep.yearly,
          .within_seconds = keep.within_seconds};
}

Result<PruneReport> PruneData(const Repository& repository, const WorkspacePruneRequest& request) {
  PruneOptions options;
  options.dry_run = request.dry_run;
  options.wait_us = request.wait_us;
  options.progress = request.progress;
  return Prune(repository, options);
}

Result<WorkspacePruned> PruneWorkspace(const WorkspaceWorld& world, const Workspace& workspace,
                                       const Repository& repository, const WorkspacePruneRequest& request) {
  OC_TRY(snapshots, repository.Snapshots(workspace.name));
  WorkspacePruned pruned;
  if (request.rules.Any()) {
    pruned.snapshots = ApplyKeepRules(snapshots, request.rules, world.clock->WallUs());
  } else {
    for (NamedSnapshot& snapshot : snapshots) pruned.snapshots.push_back({std::move(snapshot), {"no rule"}});
  }
  if (request.rules.Any()) KeepWhatCopiesStandOn(workspace, &pruned.snapshots);
  for (const KeptSnapshot& kept : pruned.snapshots) {
    if (kept.reasons.empty() && !request.dry_run) OC_TRY_VOID(repository.Forget(kept.snapshot));
  }
  OC_TRY(data, PruneData(repository, request));
  pruned.data = std::move(data);
  return pruned;
}

std::vector<RepositoryCollected> CollectRepositories(const WorkspaceWorld& world, const std::string& done,
                                                     bool dry_run) {
  WorkspaceWorld silent = world;
  silent.ask_secret = nullptr;
  std::vector<RepositoryCollected> all;
  for (const Workspace& workspace : OnePerStore(world)) {
    if (workspace.store == done) continue;
    RepositoryCollected collected{workspace.store, std::nullopt, ""};
    auto repository = OpenRepositoryOf(silent, workspace);
    if (!repository && workspace.secret == WorkspaceSecret::kPassphrase) {
      collected.skipped = StrCat("it needs its passphrase: 'overcap workspace prune ", workspace.name, "'");
    } else if (!repository) {
      collected.skipped = repository.error().message;
    } else {
      WorkspacePruneRequest request;
      request.dry_run = dry_run;
      request.wait_us = 0;
      auto report = PruneData(*repository, request);
      if (report) {
        collected.report = std::move(*report);
      } else {
        collected.skipped = report.error().message;
      }
    }
    all.push_back(std::move(collected));
  }
  return all;
}

}  // namespace overcap
