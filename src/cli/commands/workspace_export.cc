// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <thread>
#include <unistd.h>

#include "base/json_writer.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/commands/workspace_words.h"
#include "control/workspace_tar.h"

namespace overcap::cli {
namespace {

constexpr Flag kWorkspaceExportFlags[] = {
    {"--tar", "", "OUT", "the tar: its ending says how it is compressed; '-' is stdout"},
    {"--compress", "", "KIND", "lz4, zstd, gzip or plain, whatever the ending says"},
    {"--force", "", "", "replace a file that is there"},
    kWorkspaceNameFlag,
};

Result<TarCodec> CodecOf(const Args& args) {
  const std::string_view out = args.Get("--tar"), word = args.Get("--compress");
  if (args.Has("--compress")) {
    if (const auto codec = TarCodecOfWord(word)) return *codec;
    return Fail(ErrorCode::kUsage, StrCat("--compress is lz4, zstd, gzip or plain, not ", Quoted(word)));
  }
  if (out == "-") return TarCodec::kPlain;
  if (const auto codec = TarCodecOfName(out)) return *codec;
  return Fail(ErrorCode::kUsage,
              StrCat("the name ", Quoted(out), " does not say what kind of tar it is to be"),
              "end it with .tar.lz4, .tar.zst, .tar.gz or .tar, or say --compress");
}

void Tell(World& world, const NamedSnapshot& snapshot, const TarExportReport& report, std::string_view path,
          int64_t size, int64_t took_us) {
  Output& out = world.out();
  if (out.json()) {
    JsonWriter json;
    json.BeginObject()
        .Field("event", "done")
        .Field("status", 0)
        .Field("workspace", snapshot.record.workspace);
    json.Field("snapshot", snapshot.Id()).Field("tar", path).Field("entries", report.entries);
    json.Field("files", report.files).Field("bytes", report.bytes).Field("tar_bytes", size);
    out.Json(json.Field("seconds", static_cast<double>(took_us) / 1e6).EndObject().Text());
    return;
  }
  out.Line(StrCat("wrote snapshot ", SnapshotWords(snapshot, world.clock().WallUs()), ", as '", path,
                  "': ", CountOf(report.files, "file"), ", ", FormatBytes(report.bytes), "; ",
                  FormatBytes(size), ", in ", FormatElapsed(took_us)));
}

Result<int> RunWorkspaceExport(World& world, const Args& args) {
  if (!args.Has("--tar")) return Fail(ErrorCode::kUsage, "--tar is missing", "--tar OUT.tar.lz4");
  const std::string path(args.Get("--tar"));
  const bool to_stdout = path == "-";
  OC_TRY(codec, CodecOf(args));
  if (to_stdout && isatty(STDOUT_FILENO) == 1) {
    return Fail(ErrorCode::kUsage, "a tar is nothing for a terminal", "--tar FILE, or a pipe behind it");
  }
  OC_TRY(opened, OpenWorkspace(world, args.Get("--name")));
  OC_TRY(snapshot, opened.repository.Find(opened.found.workspace.name,
                                          args.words().empty() ? "latest" : args.words()[0]));
  const StopSignals signals;
  ProgressMeter meter(world.out(), world.clock());
  TarExportRequest request;
  request.tree = snapshot.record.tree;
  request.codec = codec;
  request.threads = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 8u));
  request.stop = signals.flag();
  if (!to_stdout || !world.out().json()) {
    request.progress = [&](const TarProgress& now) {
      meter.Show({"export", "exporting", now.files_done, now.files_total, now.bytes_done, now.bytes_total});
    };
  }
  int64_t size = 0;
  const auto report = [&]() -> Result<TarExportReport> {
    if (!to_stdout) return ExportTarFile(opened.repository, request, path, args.Has("--force"), &size);
    FdSink sink(STDOUT_FILENO, "stdout");
    return ExportTar(opened.repository, request, sink);
  }();
  if (!report) return EndFailed(world, signals, report.error(), "stopped; no tar was made");
  if (!to_stdout) Tell(world, snapshot, *report, path, size, meter.ElapsedUs());
  return 0;
}

}  // namespace

constinit const Command kWorkspaceExport = {
    .name = "workspace export",
    .summary = "write a snapshot as a tar that every tar can read",
    .usage = "[SNAP] --tar OUT.tar.lz4|OUT.tar.zst|OUT.tar.gz|OUT.tar|- [--name NAME]",
    .flags = kWorkspaceExportFlags,
    .max_words = 1,
    .run = RunWorkspaceExport,
    .group = CommandGroup::kCode,
};

}  // namespace overcap::cli
