// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/workspace_words.h"

#include <algorithm>
#include <filesystem>
#include <unistd.h>

#include "base/json_writer.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/store_words.h"
#include "control/ask_secret.h"
#include "control/open_cluster.h"
#include "control/stores/open_store.h"
#include "sys/own_host_name.h"

namespace overcap::cli {
namespace {

void TellProblem(Output& out, const std::string& path, const std::string& reason, bool skipped) {
  if (out.json()) {
    JsonWriter json;
    json.BeginObject().Field("event", "problem").Field("path", path).Field("reason", reason);
    out.Json(json.Field("skipped", skipped).EndObject().Text());
  } else {
    out.Warn(StrCat(Quoted(path, 400), ": ", reason, skipped ? " (skipped)" : ""));
  }
}

void TellDamage(World& world, const FoundWorkspace& found) {
  if (found.problem.empty()) return;
  world.out().Note(
      StrCat("note: ", found.problem,
             ": which snapshot the folder came from is not known; the next backup or init writes it again"));
}

void TellRest(Output& out, int64_t rest) {
  if (rest > 0 && !out.json()) out.Warn(StrCat("and ", rest, " more"));
}

}  // namespace

Result<WorkspaceWorld> WorkspacesOf(World& world) {
  WorkspaceWorld workspaces;
  OC_TRY(own, world.ClusterFolder());
  workspaces.roots.push_back(std::move(own));
  const auto add = [&](const std::string& root) {
    if (std::ranges::find(workspaces.roots, root) == workspaces.roots.end()) workspaces.roots.push_back(root);
  };
  add(world.root());
  for (const auto& [name, unused] : world.config().clusters) {
    if (const auto root = ClusterRoot(name, world.config(), world.root())) add(*root);
  }
  if (const auto folder = world.Folder()) workspaces.folder = *folder;
  workspaces.user = world.user();
  workspaces.host = OwnHostName();
  workspaces.variables = Variables::OfThisProcess();
  workspaces.stores = world.config().stores;
  workspaces.clock = &world.clock();
  workspaces.random = &world.random();
  if (isatty(STDIN_FILENO) == 1) workspaces.ask_secret = AskSecret;
  return workspaces;
}

Result<OpenedWorkspace> OpenWorkspace(World& world, std::string_view name) {
  OC_TRY(workspaces, WorkspacesOf(world));
  OC_TRY(found, FindWorkspace(workspaces, name));
  TellDamage(world, found);
  OC_TRY(repository, OpenRepositoryOf(workspaces, found.workspace));
  return OpenedWorkspace{std::move(workspaces), std::move(found), std::move(repository)};
}

Result<OpenedWorkspace> OpenWorkspaceHere(World& world, std::string_view name) {
  OC_TRY(workspaces, WorkspacesOf(world));
  OC_TRY(found, FindWorkspaceHere(workspaces, name));
  TellDamage(world, found);
  OC_TRY(repository, OpenRepositoryOf(workspaces, found.workspace));
  return OpenedWorkspace{std::move(workspaces), std::move(found), std::move(repository)};
}

Result<std::string> TypedFolder(World& world, std::string_view typed) {
  if (typed.empty()) return Fail(ErrorCode::kUsage, "the name of a folder is empty");
  if (typed.starts_with('~') || typed.starts_with('$')) return std::string(typed);
  std::filesystem::path path(typed);
  if (!path.is_absolute()) {
    OC_TRY(folder, world.Folder());
    path = std::filesystem::path(folder) / path;
  }
  std::string clean = path.lexically_normal().string();
  while (clean.size() > 1 && clean.back() == '/') clean.pop_back();
  return clean;
}

Result<std::string> TypedStore(World& world, std::string_view typed) {
  if (typed.empty()) return TypedFolder(world, typed);
  OC_TRY(place, FindStorePlace(StoreBookOf(world), std::string(typed)));  // a name that is none is refused
  const bool folder = place.location.kind == StoreKind::kFolder && place.entry.empty();
  return folder ? TypedFolder(world, typed) : std::string(typed);
}

std::string Ago(int64_t then_us, int64_t now_us) {
  const int64_t seconds = (now_us - then_us) / 1'000'000;
  return seconds < 2 ? "just now" : FormatDuration(seconds) + " ago";
}

std::string SnapshotWords(const NamedSnapshot& snapshot, int64_t now_us) {
  return StrCat(snapshot.ShortId(), " of ", FormatTimeLocal(ClockOf(snapshot.record)), ", ",
                Ago(ClockOf(snapshot.record), now_us));
}

std::function<void(const BackupProgress&)> ShowBackup(ProgressMeter* meter) {
  return [meter](const BackupProgress& now) {
    if (now.scanning) {
      meter->Show({"scan", "looking", now.entries, 0, 0, 0});
    } else {
      meter->Show({"save", "saving", now.files_done, now.files_total, now.bytes_done, now.bytes_total});
    }
  };
}

std::function<void(const RestoreProgress&)> ShowRestore(ProgressMeter* meter) {
  return [meter](const RestoreProgress& now) {
    meter->Show({"restore", "restoring", now.files_done, now.files_total, now.bytes_done, now.bytes_total});
  };
}

bool TellBackupProblems(World& world, const BackupReport& report) {
  for (const BackupProblem& problem : report.problems)
    TellProblem(world.out(), problem.path, problem.what, problem.skipped);
  TellRest(world.out(), report.unread + report.skipped - static_cast<int64_t>(report.problems.size()));
  return report.unread > 0;
}

bool TellRestoreProblems(World& world, const RestoreReport& report) {
  for (const RestoreProblem& problem : report.problems)
    TellProblem(world.out(), problem.path, problem.what, false);
  TellRest(world.out(), report.failed - static_cast<int64_t>(report.problems.size()));
  return report.failed > 0;
}

Result<int> EndFailed(World& world, const StopSignals& signals, Error error, std::string_view when_stopped) {
  if (signals.signal() == 0) return Fail(std::move(error));
  world.out().PrintError({ErrorCode::kConflict, std::string(when_stopped), ""});
  return 128 + signals.signal();
}

int TellBackup(World& world, const FoundWorkspace& found, const WorkspaceBackup& backup, int64_t took_us) {
  Output& out = world.out();
  const BackupReport& report = backup.report;
  const NamedSnapshot& newest = backup.Newest();
  const int64_t now_us = world.clock().WallUs();
  const bool missing = TellBackupProblems(world, report);
  const int status = missing ? kSomeFilesMissing : 0;
  if (backup.overtaken) {
    out.Note(StrCat("note: this folder did not come from the newest snapshot before, ",
                    SnapshotWords(*backup.overtaken, now_us), ", taken on ",
                    ToUtf8(backup.overtaken->record.host), "; both are kept"));
  }
  if (report.snapshot && report.parent && report.snapshot->record.clock_us <= report.parent->record.time_us) {
    const int64_t behind_us = report.parent->record.time_us - report.snapshot->record.clock_us;
    out.Note(StrCat("note: the clock here is ", FormatElapsed(behind_us), " behind snapshot ",
                    report.parent->ShortId(), ", taken on ", ToUtf8(report.parent->record.host),
                    ": the new one has a time just after that; check the clocks of both"));
  }
  if (report.read_again > 0) {
    const size_t packs = report.lost_packs.size();
    const std::string lost = packs == 0 ? "a pack" : StrCat("pack ", report.lost_packs[0].substr(0, 10));
    out.Note(StrCat("note: the repository has lost ", lost,
                    packs > 1 ? StrCat(" and ", packs - 1, " more") : "", "; ",
                    CountOf(report.read_again, "file"),
                    " read and stored again; 'overcap workspace verify' shows "
                    "what older snapshots have lost"));
  }
  if (missing && !out.json())
    out.Warn(StrCat(CountOf(report.unread, "path"), " could not be read; everything else is saved"));
  if (out.json()) {
    JsonWriter json;
    json.BeginObject().Field("event", "done").Field("status", status);
    json.Field("workspace", found.workspace.name).Field("folder", found.folder);
    json.Field("snapshot", newest.Id()).Field("new", report.snapshot.has_value());
    json.Field("time", FormatTimeUtc(ClockOf(newest.record))).Field("tree", report.tree.Hex());
    json.Field("entries", report.entries).Field("files", report.files).Field("bytes", report.bytes);
    json.Field("read_files", report.read_files).Field("read_bytes", report.read_bytes);
    json.Field("new_bytes", report.new_bytes).Field("stored_bytes", report.stored_bytes);
    json.Field("lost_packs", static_cast<int64_t>(report.lost_packs.size()));
    json.Field("unread", report.unread).Field("skipped", report.skipped).Field("unsteady", report.unsteady);
    out.Json(json.Field("seconds", static_cast<double>(took_us) / 1e6).EndObject().Text());
  } else if (!report.snapshot) {
    out.Line(StrCat("nothing has changed since snapshot ", SnapshotWords(newest, now_us)));
  } else {
    out.Line(StrCat("saved snapshot ", newest.ShortId(), " of '", found.workspace.name,
                    "': ", CountOf(report.files, "file"), ", ", FormatBytes(report.bytes), "; ",
                    FormatBytes(report.new_bytes), " new, ", FormatBytes(report.stored_bytes), " stored, in ",
                    FormatElapsed(took_us)));
  }
  if (report.unsteady > 0)
    out.Note(StrCat(CountOf(report.unsteady, "file"),
                    " changed while being read; the next backup reads them again"));
  return status;
}

int TellRestore(World& world, std::string_view folder, const NamedSnapshot& snapshot,
                const RestoreReport& report, int64_t took_us) {
  Output& out = world.out();
  const bool failed = TellRestoreProblems(world, report);
  const int status = failed ? kSomeFilesMissing : 0;
  const int64_t lacking = report.failed - report.kept;
  if (report.kept > 0 && !out.json())
    out.Warn(StrCat(CountOf(report.kept, "path"),
                    " kept as here; 'overcap workspace backup' saves what is not excluded"));
  if (lacking > 0 && !out.json())
    out.Warn(StrCat(CountOf(lacking, "path"), " could not be restored; everything else is there"));
  if (out.json()) {
    JsonWriter json;
    json.BeginObject().Field("event", "done").Field("status", status).Field("folder", folder);
    json.Field("outcome", "restored").Field("workspace", snapshot.record.workspace);
    json.Field("snapshot", snapshot.Id()).Field("time", FormatTimeUtc(ClockOf(snapshot.record)));
    json.Field("entries", report.entries).Field("files", report.files).Field("bytes", report.bytes);
    json.Field("same_files", report.same_files).Field("written_files", report.written_files);
    json.Field("written_bytes", report.written_bytes).Field("removed", report.removed);
    json.Field("failed", report.failed).Field("kept", report.kept);
    out.Json(json.Field("seconds", static_cast<double>(took_us) / 1e6).EndObject().Text());
    return status;
  }
  const int64_t now_us = world.clock().WallUs();
  std::string text =
      StrCat("restored snapshot ", SnapshotWords(snapshot, now_us), ", in '", folder,
             "': ", CountOf(report.written_files, "file"), " written, ", FormatBytes(report.written_bytes));
  if (report.same_files > 0) text += StrCat("; ", report.same_files, " were there already");
  if (report.removed > 0) text += StrCat("; ", report.removed, " removed");
  out.Line(StrCat(text, "; in ", FormatElapsed(took_us)));
  return status;
}

}  // namespace overcap::cli
