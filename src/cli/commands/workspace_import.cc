// SPDX-License-Identifier: Apache-2.0
#include "base/json_writer.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/commands/workspace_words.h"
#include "control/workspace_tar.h"

namespace overcap::cli {
namespace {

constexpr Flag kWorkspaceImportFlags[] = {
    {"--name", "", "NAME", "of the new workspace; by default the name of the file"},
    {"--at", "", "DIR",
     "where its folder is to be; by default one of its name in workspaces.at (/scratch/$USER)"},
    {"--strip", "", "N", "drop so many folders at the begin of every name"},
    {"--skip-devices", "", "", "leave out devices and pipes instead of refusing the tar"},
    {"--add", "", "", "make it the newest snapshot of a workspace that there is already"},
    {"--store", "", "LOCATION", "the repository; by default that of all workspaces"},
    {"--key-file", "", "FILE", "encrypt, with this file as the key; made when it is missing"},
    {"--passphrase", "", "", "encrypt, with a passphrase that is asked for"},
    {"--message", "-m", "TEXT", "words to go with the snapshot"},
};

// "/a/vision.tar.lz4" -> "vision".
std::string NameOfFile(std::string_view path) {
  const std::string_view file = path.substr(path.rfind('/') + 1);
  for (const std::string_view ending : {".tar", ".tar.lz4", ".tar.zst", ".tar.zstd", ".tar.gz", ".tgz"}) {
    if (file.ends_with(ending)) return std::string(file.substr(0, file.size() - ending.size()));
  }
  return std::string(file);
}

Result<WorkspaceImportRequest> ReadRequest(World& world, const Args& args) {
  const Config::Workspaces& usual = world.config().workspaces;
  WorkspaceImportRequest request;
  request.tar = args.words()[0];
  WorkspaceCreateRequest& workspace = request.workspace;
  workspace.name = args.Has("--name") ? std::string(args.Get("--name")) : NameOfFile(request.tar);
  if (request.tar == "-" && !args.Has("--name")) return Fail(ErrorCode::kUsage, "--name is missing");
  workspace.at = StrCat(usual.at, "/", workspace.name);
  if (args.Has("--at")) {
    OC_TRY(at, TypedFolder(world, args.Get("--at")));
    workspace.at = std::move(at);
  }
  workspace.store = usual.store;
  if (args.Has("--store")) {
    OC_TRY(store, TypedStore(world, args.Get("--store")));
    workspace.store = std::move(store);
  }
  workspace.passphrase = args.Has("--passphrase");
  workspace.key_file = workspace.passphrase ? "" : usual.key_file;
  if (args.Has("--key-file")) {
    OC_TRY(key_file, TypedFolder(world, args.Get("--key-file")));
    workspace.key_file = std::move(key_file);
  }
  workspace.exclude = usual.exclude;
  request.add = args.Has("--add");
  for (const std::string_view flag : {"--at", "--store", "--key-file", "--passphrase"}) {
    if (request.add && args.Has(flag))
      return Fail(ErrorCode::kUsage,
                  StrCat(flag, " cannot go with --add: the workspace has all that already"));
  }
  OC_TRY(strip, args.GetInt("--strip", 0, 0, 1000));
  request.import.strip = static_cast<int>(strip);
  request.import.skip_special = args.Has("--skip-devices");
  request.import.message = args.Get("--message");
  return request;
}

void Tell(World& world, const WorkspaceImport& done, int64_t took_us) {
  Output& out = world.out();
  const SnapshotRecord& record = done.report.snapshot.record;
  if (out.json()) {
    JsonWriter json;
    json.BeginObject().Field("event", "done").Field("status", 0).Field("workspace", record.workspace);
    json.Field("folder", done.found.folder).Field("snapshot", done.report.snapshot.Id());
    json.Field("tree", record.tree.Hex()).Field("entries", record.entries).Field("files", record.files);
    json.Field("bytes", record.bytes)
        .Field("new_bytes", record.new_bytes)
        .Field("stored_bytes", record.stored_bytes);
    json.Field("skipped", done.report.skipped);
    out.Json(json.Field("seconds", static_cast<double>(took_us) / 1e6).EndObject().Text());
    return;
  }
  out.Line(StrCat("made snapshot ", done.report.snapshot.ShortId(), " of '", record.workspace,
                  "': ", CountOf(record.files, "file"), ", ", FormatBytes(record.bytes), "; ",
                  FormatBytes(record.stored_bytes), " stored, in ", FormatElapsed(took_us)));
  if (done.report.skipped > 0) {
    out.Note(
        StrCat(done.report.skipped, done.report.skipped == 1 ? " entry was" : " entries were", " left out"));
  }
  out.Note(StrCat("'overcap workspace init ", record.workspace, "' unpacks it in '", done.found.folder, "'"));
}

Result<int> RunWorkspaceImport(World& world, const Args& args) {
  OC_TRY(request, ReadRequest(world, args));
  OC_TRY(workspaces, WorkspacesOf(world));
  const StopSignals signals;
  ProgressMeter meter(world.out(), world.clock());
  request.import.progress = [&](const TarProgress& now) {
    meter.Show({"import", "importing", now.files_done, now.files_total, now.bytes_done, now.bytes_total});
  };
  request.import.stop = signals.flag();
  const auto done = ImportWorkspace(workspaces, request);
  if (!done) return EndFailed(world, signals, done.error(), "stopped; nothing was made");
  Tell(world, *done, meter.ElapsedUs());
  return 0;
}

}  // namespace

constinit const Command kWorkspaceImport = {
    .name = "workspace import",
    .summary = "make a workspace of a tar",
    .usage = "IN.tar.* [--name NAME] [--at DIR] [--strip N] [--add]",
    .flags = kWorkspaceImportFlags,
    .min_words = 1,
    .max_words = 1,
    .run = RunWorkspaceImport,
    .group = CommandGroup::kCode,
};

}  // namespace overcap::cli
