// SPDX-License-Identifier: Apache-2.0
#include "base/json_writer.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/commands/workspace_words.h"
#include "control/workspace_create.h"

namespace overcap::cli {
namespace {

constexpr Flag kWorkspaceInitFlags[] = {
    {"--at", "", "DIR", "where on this node; by default where it was made"},
    {"--force", "", "", "also over changes here that no snapshot has"},
    {"--store", "", "LOCATION", "the repository of a workspace that is not known here yet"},
    {"--key-file", "", "FILE", "with --store: the key that opens it"},
    {"--passphrase", "", "", "with --store: it is opened by a passphrase"},
};

// One that another root knows, or none any more: its repository says all that is needed.
Result<FoundWorkspace> TakeFromStore(World& world, const WorkspaceWorld& workspaces, const Args& args) {
  if (args.words().empty()) return Fail(ErrorCode::kUsage, "with --store the workspace must be named");
  WorkspaceCreateRequest request;
  request.name = args.words()[0];
  request.at = StrCat(world.config().workspaces.at, "/", request.name);
  if (args.Has("--at")) {
    OC_TRY(at, TypedFolder(world, args.Get("--at")));
    request.at = std::move(at);
  }
  OC_TRY(store, TypedStore(world, args.Get("--store")));
  request.store = std::move(store);
  if (args.Has("--key-file")) {
    OC_TRY(key_file, TypedFolder(world, args.Get("--key-file")));
    request.key_file = std::move(key_file);
  }
  request.passphrase = args.Has("--passphrase");
  return RegisterWorkspace(workspaces, request);
}

// Where it would usually be does not matter when the user says where.
Result<FoundWorkspace> FindForInit(World& world, const WorkspaceWorld& workspaces, const Args& args,
                                   const std::string& at) {
  if (args.Has("--store")) return TakeFromStore(world, workspaces, args);
  const std::string name = args.words().empty() ? "" : args.words()[0];
  if (at.empty() || name.empty()) return FindWorkspace(workspaces, name);
  OC_TRY(workspace, FindRegistered(workspaces, name));
  return FoundWorkspace{std::move(workspace), at, std::nullopt};
}

void TellHas(World& world, const WorkspaceInit& init) {
  Output& out = world.out();
  const bool same = init.outcome == InitOutcome::kHasNewest;
  const auto changes = static_cast<int64_t>(init.changes.changes.size());
  if (out.json()) {
    JsonWriter json;
    json.BeginObject().Field("event", "done").Field("status", 0).Field("folder", init.folder);
    json.Field("outcome", same ? "has_newest" : "has_changes");
    json.Field("workspace", init.snapshot.record.workspace).Field("snapshot", init.snapshot.Id());
    json.Field("time", FormatTimeUtc(ClockOf(init.snapshot.record))).Field("changes", changes);
    out.Json(json.EndObject().Text());
    return;
  }
  std::string text = StrCat("'", init.folder, "' has the newest snapshot, ",
                            SnapshotWords(init.snapshot, world.clock().WallUs()));
  if (same) {
    out.Line(text);
    return;
  }
  out.Line(StrCat(text, ", and ", CountOf(changes, "change"), " since: ", SomeOf(init.changes.changes)));
  out.Note(
      "'overcap workspace backup' saves them; 'overcap workspace init --force' goes back to the snapshot");
}

Result<int> RunWorkspaceInit(World& world, const Args& args) {
  OC_TRY(workspaces, WorkspacesOf(world));
  for (const char* flag : {"--key-file", "--passphrase"}) {
    if (args.Has(flag) && !args.Has("--store"))
      return Fail(ErrorCode::kUsage, StrCat(flag, " means nothing without --store"));
  }
  std::string at;
  if (args.Has("--at")) {
    OC_TRY(typed, TypedFolder(world, args.Get("--at")));
    OC_TRY(expanded, ExpandHere(workspaces, typed));
    at = std::move(expanded);
  }
  auto found = FindForInit(world, workspaces, args, at);
  if (!found) return Fail(found.error());
  OC_TRY(repository, OpenRepositoryOf(workspaces, found->workspace));
  const StopSignals signals;
  ProgressMeter meter(world.out(), world.clock());
  const WorkspaceRestoreOptions options{args.Has("--force"), ShowRestore(&meter), signals.flag()};
  const std::string env = found->workspace.env;
  const std::string usual = ExpandHere(workspaces, found->workspace.at).value_or(found->workspace.at);
  const auto init = InitWorkspace(workspaces, std::move(*found), repository, at, options);
  if (!init) {
    return EndFailed(
        world, signals, init.error(),
        "stopped; 'overcap workspace init' goes on where it was, until then it is not backed up");
  }
  if (init->outcome != InitOutcome::kRestored) {
    TellHas(world, *init);
    return 0;
  }
  const int status = TellRestore(world, init->folder, init->snapshot, init->report, meter.ElapsedUs());
  if (env != "none" && init->folder != usual) {
    world.out().Warn(StrCat("its ", env, " environment was made for '", usual,
                            "': scripts in it may have that path inside"));
  }
  world.out().Note(
      StrCat("'. ", ShellQuote(LocalFolderOf(init->folder)), "/activate' sets up a shell for it"));
  return status;
}

}  // namespace

constinit const Command kWorkspaceInit = {
    .name = "workspace init",
    .summary = "bring a workspace to this node: the newest snapshot, only what differs",
    .usage = "[NAME] [--at DIR] [--force] [--store LOCATION [--key-file FILE | --passphrase]]",
    .flags = kWorkspaceInitFlags,
    .max_words = 1,
    .run = RunWorkspaceInit,
    .group = CommandGroup::kCode,
};

}  // namespace overcap::cli
