// SPDX-License-Identifier: Apache-2.0
#include "control/gc.h"

#include "base/json_writer.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/commands/job_words.h"
#include "cli/commands/workspace_words.h"
#include "control/launches.h"
#include "control/mounts/sweep_mounts.h"
#include "control/workspace_prune.h"

namespace overcap::cli {
namespace {

constexpr Flag kGcFlags[] = {
    {"--older-than", "", "TIME", "jobs that ended longer ago: 12h, 30d"},
    {"--max-size", "", "SIZE", "oldest jobs until the rest is this small: 50G"},
    {"--dry-run", "", "", "say what would go, remove nothing"},
};

Result<GcRequest> ReadRequest(const World& world, const Args& args) {
  const Config::Retention& retention = world.config().retention;
  GcRequest request{.age_seconds = retention.age_seconds,
                    .size_bytes = retention.size_bytes,
                    .dry_run = args.Has("--dry-run")};
  if (args.Has("--older-than")) {
    OC_TRY(seconds, OfFlag(args.Typed("--older-than"), ParseDurationSeconds(args.Get("--older-than"))));
    request.age_seconds = seconds;
  }
  if (args.Has("--max-size")) {
    OC_TRY(bytes, OfFlag(args.Typed("--max-size"), ParseBytes(args.Get("--max-size"))));
    request.size_bytes = bytes;
  }
  return request;
}

using Repositories = std::vector<RepositoryCollected>;

void WriteRepositories(JsonWriter* json, const Repositories& repositories) {
  json->Key("repositories").BeginArray();
  for (const RepositoryCollected& repository : repositories) {
    const PruneReport report = repository.report.value_or(PruneReport{});
    json->BeginObject().Field("store", repository.store).Field("skipped", repository.skipped);
    json->Field("removed_bytes", report.removed_bytes).Field("kept_bytes", report.kept_bytes);
    json->Field("waiting_packs", report.waiting_packs).EndObject();
  }
  json->EndArray();
}

void PrintRepositories(Output& out, const Repositories& repositories, bool dry_run) {
  for (const RepositoryCollected& repository : repositories) {
    const std::string where = StrCat("workspaces in '", ToUtf8(repository.store), "'");
    if (!repository.report) {
      out.Warn(StrCat(where, " were left as they are: ", repository.skipped));
    } else if (repository.report->removed_packs > 0 || repository.report->waiting_packs > 0) {
      out.Line(StrCat(
          where, ": ", dry_run ? "would free " : "freed ", FormatBytes(repository.report->removed_bytes),
          ", kept ", FormatBytes(repository.report->kept_bytes),
          repository.report->waiting_packs > 0 ? "; more when the backups that run are done" : ""));
    }
  }
}

void PrintMounts(Output& out, const MountsSwept& mounts) {
  if (mounts.slots > 0)
    out.Line(StrCat("cleared mounts of ", CountOf(mounts.slots, "job"),
                    " that had no clean end; saved the outputs of ", CountOf(mounts.saved, "mount")));
  for (const std::string& line : mounts.unsaved) out.Warn(line);
}

void WriteJobStores(JsonWriter* json, const GcReport& report) {
  json->Key("job_stores").BeginArray();
  for (const StoreCollected& store : report.job_stores) {
    json->BeginObject().Field("store", store.at).Field("skipped", store.skipped);
    json->Field("objects", store.report.removed).Field("object_bytes", store.report.removed_bytes);
    json->Field("kept_bytes", store.report.kept_bytes).EndObject();
  }
  json->EndArray();
}

void PrintJobStores(Output& out, const GcReport& report) {
  for (const StoreCollected& store : report.job_stores) {
    if (!store.skipped.empty()) {
      out.Warn(StrCat("code of jobs in '", ToUtf8(store.at), "' was left as it is: ", store.skipped));
    } else if (store.report.removed > 0) {
      out.Line(StrCat("code of jobs in '", ToUtf8(store.at), "': freed ",
                      FormatBytes(store.report.removed_bytes), ", kept ",
                      FormatBytes(store.report.kept_bytes)));
    }
  }
}

void PrintJson(Output& out, const GcReport& report, const OldLaunches& launches,
               const Repositories& repositories, const MountsSwept& mounts, bool dry_run) {
  JsonWriter json;
  json.BeginObject().Field("dry_run", dry_run).Key("jobs").BeginArray();
  for (const EndedJob& job : report.jobs) json.String(job.id);
  json.EndArray().Field("job_bytes", report.job_bytes);
  json.Field("launches", launches.ids).Field("launch_bytes", launches.bytes);
  json.Field("objects", report.store.removed).Field("object_bytes", report.store.removed_bytes);
  WriteJobStores(&json, report);
  WriteRepositories(&json, repositories);
  json.Key("mounts").BeginObject().Field("cleared", mounts.slots).Field("saved", mounts.saved);
  json.Field("unsaved", mounts.unsaved).EndObject();
  out.Json(json.Field("kept_bytes", report.store.kept_bytes).EndObject().Text());
}

void PrintText(Output& out, const GcReport& report, const OldLaunches& launches, bool dry_run) {
  if (!launches.ids.empty()) {
    out.Line(StrCat(dry_run ? "would remove " : "removed ", launches.ids.size(),
                    launches.ids.size() == 1 ? " launch, " : " launches, ", FormatBytes(launches.bytes)));
  }
  if (dry_run) {
    for (const EndedJob& job : report.jobs) {
      out.Line(StrCat(job.id, "  ended ", FormatTimeLocal(job.ended_us), "  ", FormatBytes(job.bytes)));
    }
    out.Line(StrCat("would remove ", CountOf(static_cast<int64_t>(report.jobs.size()), "job"), ", ",
                    FormatBytes(report.job_bytes)));
    return;
  }
  out.Line(StrCat("removed ", CountOf(static_cast<int64_t>(report.jobs.size()), "job"), ", ",
                  FormatBytes(report.job_bytes), "; ", CountOf(report.store.removed, "object"),
                  " of the store, ", FormatBytes(report.store.removed_bytes)));
  out.Line(
      StrCat("kept ", CountOf(report.store.kept, "object"), ", ", FormatBytes(report.store.kept_bytes),
             report.store.waiting > 0 ? "; more goes when the captures and backups that run are done" : ""));
}

Result<int> RunGc(World& world, const Args& args) {
  OC_TRY(cluster, world.GetCluster());
  OC_TRY(request, ReadRequest(world, args));
  OC_TRY(folder, world.ClusterFolder());
  request.jobs_folder = folder + "/jobs";
  OC_TRY(report, CollectGarbage(*cluster, folder + "/store", request, world.clock()));
  OC_TRY(launches, RemoveOldLaunches(world.root(), request.age_seconds, request.dry_run, world.clock()));
  OC_TRY(workspaces, WorkspacesOf(world));
  const std::string done = request.dry_run ? "" : folder + "/store";
  const Repositories repositories = CollectRepositories(workspaces, done, request.dry_run);
  const MountsSwept mounts =
      request.dry_run ? MountsSwept() : SweepMountsHere(world.config(), cluster->Name());
  if (world.out().json()) {
    PrintJson(world.out(), report, launches, repositories, mounts, request.dry_run);
  } else {
    PrintText(world.out(), report, launches, request.dry_run);
    PrintJobStores(world.out(), report);
    PrintRepositories(world.out(), repositories, request.dry_run);
    PrintMounts(world.out(), mounts);
  }
  return 0;
}

}  // namespace

constinit const Command kGc = {
    .name = "gc",
    .summary = "remove old ended jobs, and code that no job needs any more",
    .usage = "[--older-than TIME] [--max-size SIZE] [--dry-run]",
    .flags = kGcFlags,
    .max_words = 0,
    .run = RunGc,
};

}  // namespace overcap::cli
