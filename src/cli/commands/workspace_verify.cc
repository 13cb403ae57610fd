// SPDX-License-Identifier: Apache-2.0
#include "base/json_writer.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/commands/workspace_words.h"
#include "control/workspace_prune.h"

namespace overcap::cli {
namespace {

constexpr Flag kWorkspaceVerifyFlags[] = {
    {"--read-data", "", "", "read and hash everything, not only the lists"},
    {"--all", "", "", "all workspaces of the same repository"},
};

void TellDamage(Output& out, const RepositoryVerifyReport& report) {
  for (const std::string& line : report.damage) {
    if (out.json()) {
      out.Json(JsonWriter().BeginObject().Field("event", "damage").Field("object", line).EndObject().Text());
    } else {
      out.Warn(line);
    }
  }
  for (const DamagedFile& file : report.files) {
    if (out.json()) {
      JsonWriter json;
      json.BeginObject().Field("event", "problem").Field("path", file.path).Field("reason", file.what);
      json.Field("skipped", false).Field("workspace", file.workspace).Field("files", file.files);
      out.Json(json.Field("snapshot", file.snapshot).EndObject().Text());
    } else if (file.path.empty()) {
      out.Warn(StrCat("snapshot ", file.snapshot, " of '", file.workspace, "' cannot be restored (",
                      CountOf(file.files, "file"), "): ", file.what));
    } else {
      out.Warn(StrCat("lost: ", Quoted(file.path, 400), " of '", file.workspace, "', snapshot ",
                      file.snapshot, ": ", file.what));
    }
  }
}

Result<int> RunWorkspaceVerify(World& world, const Args& args) {
  OC_TRY(opened, OpenWorkspace(world, args.words().empty() ? "" : args.words()[0]));
  Output& out = world.out();
  ProgressMeter meter(out, world.clock());
  RepositoryVerifyOptions options;
  options.read_data = args.Has("--read-data");
  if (!args.Has("--all")) options.workspace = opened.found.workspace.name;
  options.progress = [&](int64_t done, int64_t total) {
    meter.Show({"verify", "checking", 0, 0, done, total});
  };
  OC_TRY(report, VerifyRepository(opened.repository, options));
  TellDamage(out, report);
  int64_t lost = 0;
  for (const DamagedFile& file : report.files) lost += file.files;
  const int status = report.Sound() ? 0 : ExitStatus(ErrorCode::kCorrupt);
  if (out.json()) {
    JsonWriter json;
    json.BeginObject().Field("event", "done").Field("status", status).Field("sound", report.Sound());
    json.Field("snapshots", report.snapshots).Field("packs", report.packs).Field("chunks", report.chunks);
    json.Field("bytes_read", report.bytes_read).Field("damaged", static_cast<int64_t>(report.damage.size()));
    out.Json(json.Field("lost", lost).EndObject().Text());
    return status;
  }
  const std::string what =
      StrCat(CountOf(report.snapshots, "snapshot"), ", ", CountOf(report.packs, "pack"), ", ",
             CountOf(report.chunks, "chunk"), ", ", FormatBytes(report.bytes_read), " read");
  if (report.Sound()) {
    out.Line("sound: " + what);
  } else {
    out.Line(StrCat("damaged: ", CountOf(static_cast<int64_t>(report.damage.size()), "object"), ", ",
                    CountOf(lost, "file"), " lost, of ", what));
    out.Note(
        "what the folder still has can be stored again: move the packs that are named out of the repository, "
        "then "
        "'overcap workspace backup --read-all'");
  }
  return status;
}

}  // namespace

constinit const Command kWorkspaceVerify = {
    .name = "workspace verify",
    .summary = "whether every snapshot can be restored; names what cannot",
    .usage = "[NAME] [--read-data] [--all]",
    .flags = kWorkspaceVerifyFlags,
    .max_words = 1,
    .run = RunWorkspaceVerify,
    .group = CommandGroup::kCode,
};

}  // namespace overcap::cli
