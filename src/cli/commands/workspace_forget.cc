// SPDX-License-Identifier: Apache-2.0
#include "base/json_writer.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/commands/workspace_words.h"

namespace overcap::cli {
namespace {

constexpr Flag kWorkspaceForgetFlags[] = {kWorkspaceNameFlag};

// All are found before the first one goes: a name that is wrong removes nothing.
Result<int> RunWorkspaceForget(World& world, const Args& args) {
  OC_TRY(opened, OpenWorkspace(world, args.Get("--name")));
  std::vector<NamedSnapshot> snapshots;
  for (const std::string& word : args.words()) {
    OC_TRY(snapshot, opened.repository.Find(opened.found.workspace.name, word));
    snapshots.push_back(std::move(snapshot));
  }
  std::vector<std::string> ids;
  for (const NamedSnapshot& snapshot : snapshots) {
    OC_TRY_VOID(opened.repository.Forget(snapshot));
    ids.push_back(snapshot.Id());
    if (!world.out().json())
      world.out().Line(StrCat("forgot ", SnapshotWords(snapshot, world.clock().WallUs())));
  }
  if (world.out().json())
    world.out().Json(JsonWriter().BeginObject().Field("removed", ids).EndObject().Text());
  world.out().Note("'overcap workspace prune' frees the space of what nothing needs any more");
  return 0;
}

}  // namespace

constinit const Command kWorkspaceForget = {
    .name = "workspace forget",
    .summary = "remove snapshots by name",
    .usage = "SNAP... [--name NAME]",
    .flags = kWorkspaceForgetFlags,
    .min_words = 1,
    .run = RunWorkspaceForget,
    .group = CommandGroup::kCode,
};

}  // namespace overcap::cli
