// SPDX-License-Identifier: Apache-2.0
#include "control/workspace_restore.h"

#include "cli/commands/commands.h"
#include "cli/commands/workspace_words.h"
#include "control/workspace_contents.h"

namespace overcap::cli {
namespace {

constexpr Flag kWorkspaceRestoreFlags[] = {
    {"--to", "", "DIR", "into this folder, not into the workspace"},
    {"--force", "", "", "also over changes that no snapshot has, or into a folder that is not empty"},
    kWorkspaceNameFlag,
};

Result<std::vector<std::string>> WantedPaths(const OpenedWorkspace& opened, const NamedSnapshot& snapshot,
                                             const Args& args) {
  std::vector<std::string> paths;
  if (args.words().size() < 2) return paths;
  OC_TRY(contents, SnapshotContents::Open(opened.repository));
  for (size_t i = 1; i < args.words().size(); ++i) {
    OC_TRY(path, PathInWorkspace(args.words()[i], opened.found.folder, opened.workspaces.folder));
    if (path.empty()) return std::vector<std::string>();  // the folder itself: all of it
    OC_TRY_VOID(contents.Find(snapshot, path).map([](const auto&) {}));
    paths.push_back(std::move(path));
  }
  return paths;
}

Result<int> RunWorkspaceRestore(World& world, const Args& args) {
  OC_TRY(opened, OpenWorkspace(world, args.Get("--name")));
  OC_TRY(snapshot, opened.repository.Find(opened.found.workspace.name, args.words()[0]));
  OC_TRY(paths, WantedPaths(opened, snapshot, args));
  std::string target = opened.found.folder;
  if (args.Has("--to")) {
    OC_TRY(typed, TypedFolder(world, args.Get("--to")));
    OC_TRY(expanded, ExpandHere(opened.workspaces, typed));
    target = std::move(expanded);
  } else {
    OC_TRY_VOID(FindWorkspaceHere(opened.workspaces, opened.found.workspace.name).map([](const auto&) {}));
  }
  const StopSignals signals;
  ProgressMeter meter(world.out(), world.clock());
  const WorkspaceRestoreOptions options{args.Has("--force"), ShowRestore(&meter), signals.flag()};
  const auto report = args.Has("--to") ? RestoreElsewhere(opened.repository, snapshot, paths, target, options)
                                       : RestoreInPlace(opened.workspaces, opened.found, opened.repository,
                                                        snapshot, paths, options);
  if (!report)
    return EndFailed(world, signals, report.error(), "stopped; the same command goes on where it was");
  return TellRestore(world, target, snapshot, *report, meter.ElapsedUs());
}

}  // namespace

constinit const Command kWorkspaceRestore = {
    .name = "workspace restore",
    .summary = "bring a snapshot, or some paths of it, back: in place or into another folder",
    .usage = "SNAP [PATH...] [--to DIR] [--name NAME] [--force]",
    .flags = kWorkspaceRestoreFlags,
    .min_words = 1,
    .run = RunWorkspaceRestore,
    .group = CommandGroup::kCode,
};

}  // namespace overcap::cli
