// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/commands.h"
#include "cli/commands/workspace_words.h"
#include "control/workspace_contents.h"

namespace overcap::cli {
namespace {

constexpr Flag kWorkspaceCatFlags[] = {kWorkspaceNameFlag};

Result<int> RunWorkspaceCat(World& world, const Args& args) {
  OC_TRY(opened, OpenWorkspace(world, args.Get("--name")));
  OC_TRY(snapshot, opened.repository.Find(opened.found.workspace.name, args.words()[0]));
  OC_TRY(path, PathInWorkspace(args.words()[1], opened.found.folder, opened.workspaces.folder));
  OC_TRY(contents, SnapshotContents::Open(opened.repository));
  OC_TRY_VOID(contents.Cat(snapshot, path, [&](std::string_view bytes) -> Result<void> {
    world.out().Write(bytes);
    return world.out().Flush();  // whoever reads it may have gone
  }));
  return 0;
}

}  // namespace

constinit const Command kWorkspaceCat = {
    .name = "workspace cat",
    .summary = "a file as it was in a snapshot",
    .usage = "SNAP PATH [--name NAME]",
    .flags = kWorkspaceCatFlags,
    .min_words = 2,
    .max_words = 2,
    .run = RunWorkspaceCat,
    .group = CommandGroup::kCode,
};

}  // namespace overcap::cli
