// SPDX-License-Identifier: Apache-2.0
#include "control/workspace_create.h"

#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/commands/workspace_words.h"

namespace overcap::cli {
namespace {

constexpr Flag kWorkspaceCreateFlags[] = {
    {"--at", "", "DIR", "the folder; by default one of its name in workspaces.at (/scratch/$USER)"},
    {"--env", "", "KIND", "conda, venv or none: the environment that is made in it"},
    {"--setup", "", "CMD", "run in it when it is made: words, no shell; several one after the other", true},
    {"--store", "", "LOCATION", "the repository; by default that of all workspaces"},
    {"--key-file", "", "FILE", "encrypt, with this file as the key; made when it is missing"},
    {"--passphrase", "", "", "encrypt, with a passphrase that is asked for"},
    {"--exclude", "", "PATTERN", "what is not saved, as in a .gitignore", true},
    {"--adopt", "", "", "make a workspace of a folder that has something in it already"},
    {"--message", "-m", "TEXT", "words to go with the first snapshot"},
};

Result<WorkspaceCreateRequest> ReadRequest(World& world, const Args& args) {
  const Config::Workspaces& usual = world.config().workspaces;
  WorkspaceCreateRequest request;
  request.name = args.words().empty() ? "work" : args.words()[0];
  request.at = StrCat(usual.at, "/", request.name);
  if (args.Has("--at")) {
    OC_TRY(at, TypedFolder(world, args.Get("--at")));
    request.at = std::move(at);
  }
  request.env = args.Has("--env") ? args.Get("--env") : usual.env;
  request.setup = args.Has("--setup") ? args.All("--setup") : usual.setup;
  request.store = usual.store;
  if (args.Has("--store")) {
    OC_TRY(store, TypedStore(world, args.Get("--store")));
    request.store = std::move(store);
  }
  request.passphrase = args.Has("--passphrase");
  request.key_file = request.passphrase ? "" : usual.key_file;
  if (args.Has("--key-file")) {
    OC_TRY(key_file, TypedFolder(world, args.Get("--key-file")));
    request.key_file = std::move(key_file);
  }
  request.exclude = args.Has("--exclude") ? args.All("--exclude") : usual.exclude;
  request.adopt = args.Has("--adopt");
  request.backup.message = args.Get("--message");
  return request;
}

Result<int> RunWorkspaceCreate(World& world, const Args& args) {
  OC_TRY(request, ReadRequest(world, args));
  OC_TRY(workspaces, WorkspacesOf(world));
  Output& out = world.out();
  const StopSignals signals;
  ProgressMeter meter(out, world.clock());
  request.backup.progress = ShowBackup(&meter);
  request.backup.stop = signals.flag();
  request.tell = [&](const std::string& step) { out.Note(step); };
  const auto created = CreateWorkspace(workspaces, request);
  if (!created) return EndFailed(world, signals, created.error(), "stopped; nothing was made");
  const int status = TellBackup(world, created->found, created->first, meter.ElapsedUs());
  out.Note(StrCat("workspace '", request.name, "' is in '", created->found.folder, "'"));
  out.Note(StrCat(
      "'. ", ShellQuote(LocalFolderOf(created->found.folder)),
      "/activate' sets up a shell for it; 'overcap workspace backup' saves it, 'overcap workspace init ",
      request.name, "' brings it to another node"));
  return status;
}

}  // namespace

constinit const Command kWorkspaceCreate = {
    .name = "workspace create",
    .summary = "make a folder on a local disk that is backed up and follows you to any node",
    .usage =
        "[NAME] [--at DIR] [--env KIND] [--setup CMD]... [--store LOCATION] [--key-file FILE | --passphrase]",
    .flags = kWorkspaceCreateFlags,
    .max_words = 1,
    .run = RunWorkspaceCreate,
    .group = CommandGroup::kCode,
};

}  // namespace overcap::cli
