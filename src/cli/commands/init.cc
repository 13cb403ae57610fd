// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/json_writer.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/commands/job_words.h"
#include "control/capture_limit.h"
#include "control/submit.h"

namespace overcap::cli {
namespace {

void WriteSizes(JsonWriter& json, std::string_view key, const std::vector<PathSize>& paths) {
  json.Key(key).BeginArray();
  for (const PathSize& path : paths) {
    json.BeginObject()
        .Field("path", path.path)
        .Field("files", path.files)
        .Field("bytes", path.bytes)
        .EndObject();
  }
  json.EndArray();
}

void PrintJson(Output& out, const std::string& folder, const CaptureReport& report) {
  JsonWriter json;
  json.BeginObject().Field("folder", folder).Field("snapshot", report.tree_id).Field("files", report.files);
  json.Field("bytes", report.bytes).Field("new_files", report.new_files).Field("new_bytes", report.new_bytes);
  WriteSizes(json, "largest_files", report.largest.files);
  WriteSizes(json, "largest_folders", report.largest.folders);
  out.Json(json.Field("notes", report.notes).EndObject().Text());
}

void PrintSizes(Output& out, std::string_view title, const std::vector<PathSize>& paths) {
  if (paths.empty()) return;
  constexpr size_t kWidth = 10;  // of "1023.9 MiB"
  out.Line(title);
  for (const PathSize& path : paths) {
    const std::string size = FormatBytes(path.bytes);
    const std::string blanks(kWidth - std::min(kWidth, size.size()), ' ');
    out.Line(StrCat("  ", blanks, size, "  ", ToUtf8(path.path)));
  }
}

void PrintText(Output& out, const std::string& folder, const CaptureReport& report) {
  out.Line(StrCat("folder    ", folder));
  out.Line(StrCat("snapshot  ", report.tree_id));
  out.Line(StrCat("files     ", report.files, ", ", FormatBytes(report.bytes)));
  out.Line(StrCat("new       ", report.new_files, ", ", FormatBytes(report.new_bytes)));
  PrintSizes(out, "largest folders", report.largest.folders);
  PrintSizes(out, "largest files", report.largest.files);
}

Result<int> RunInit(World& world, const Args&) {
  Output& out = world.out();
  OC_TRY(folder, world.Folder());
  OC_TRY(root, world.ClusterFolder());
  CaptureOptions options;
  options.progress = [&](int64_t files, int64_t bytes) {
    out.Progress(StrCat("capturing code: ", CountOf(files, "file"), ", ", FormatBytes(bytes)));
  };
  options.limit = CaptureLimitOf(folder, Variables::OfThisProcess(), world.config());
  OC_TRY(report, CaptureFolder(folder, root + "/store", world.clock(), options));
  out.ClearProgress();
  for (const std::string& note : report.notes) out.Note(note);
  const std::string warning = CaptureWarning(report, world.config());
  if (!warning.empty()) out.Warn(warning);
  if (out.json()) {
    PrintJson(out, folder, report);
  } else {
    PrintText(out, folder, report);
  }
  return 0;
}

}  // namespace

constinit const Command kInit = {
    .name = "init",
    .summary = "capture the code of this folder now, and say what it is",
    .max_words = 0,
    .run = RunInit,
    .group = CommandGroup::kCode,
};

}  // namespace overcap::cli
