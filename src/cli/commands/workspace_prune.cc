// SPDX-License-Identifier: Apache-2.0
#include "control/workspace_prune.h"

#include "base/json_writer.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/commands/workspace_words.h"
#include "cli/table.h"

namespace overcap::cli {
namespace {

constexpr Flag kWorkspacePruneFlags[] = {
    {"--keep-last", "", "N", "keep the newest N"},
    {"--keep-hourly", "", "N", "keep the last of each of N hours that have one"},
    {"--keep-daily", "", "N", "keep the last of each of N days"},
    {"--keep-weekly", "", "N", "keep the last of each of N weeks"},
    {"--keep-monthly", "", "N", "keep the last of each of N months"},
    {"--keep-yearly", "", "N", "keep the last of each of N years"},
    {"--keep-within", "", "TIME", "keep all that are younger: 12h, 30d"},
    {"--dry-run", "", "", "say what would go, remove nothing"},
};

// Flags in the place of the configuration's rules, all of them.
Result<KeepRules> ReadRules(const World& world, const Args& args) {
  KeepRules rules;
  struct Row {
    std::string_view flag;
    int64_t* value;
  };
  const Row rows[] = {{"--keep-last", &rules.last},       {"--keep-hourly", &rules.hourly},
                      {"--keep-daily", &rules.daily},     {"--keep-weekly", &rules.weekly},
                      {"--keep-monthly", &rules.monthly}, {"--keep-yearly", &rules.yearly}};
  bool given = args.Has("--keep-within");
  for (const Row& row : rows) {
    OC_TRY(value, args.GetInt(row.flag, 0, 0, 1'000'000));
    *row.value = value;
    given = given || args.Has(row.flag);
  }
  if (args.Has("--keep-within")) {
    OC_TRY(seconds, OfFlag("--keep-within", ParseDurationSeconds(args.Get("--keep-within"))));
    rules.within_seconds = seconds;
  }
  if (given && !rules.Any())
    return Fail(ErrorCode::kUsage, "these rules keep nothing", "the newest would stay: say --keep-last 1");
  return given ? rules : KeepRulesOf(world.config().workspaces.keep);
}

void PrintSnapshots(World& world, const WorkspacePruned& pruned, bool dry_run) {
  Table table({{"SNAPSHOT"}, {"TIME"}, {"AGE", true}, {"WHAT"}, {"WHY", false, true}});
  const int64_t now_us = world.clock().WallUs();
  for (const KeptSnapshot& kept : pruned.snapshots) {
    const NamedSnapshot& snapshot = kept.snapshot;
    const bool stays = !kept.reasons.empty();
    table.AddRow(
        {snapshot.ShortId(), FormatTimeLocal(ClockOf(snapshot.record)), Ago(ClockOf(snapshot.record), now_us),
         stays     ? "keep"
         : dry_run ? "would go"
                   : "gone",
         Join(kept.reasons, ", ")},
        {stays ? Style::kPlain : Style::kDim});
  }
  if (!pruned.snapshots.empty()) world.out().Print(table);
}

int64_t GoneOf(const WorkspacePruned& pruned) {
  int64_t gone = 0;
  for (const KeptSnapshot& kept : pruned.snapshots) gone += kept.reasons.empty() ? 1 : 0;
  return gone;
}

void PrintDone(World& world, const WorkspacePruned& pruned, bool dry_run) {
  Output& out = world.out();
  const PruneReport& data = pruned.data;
  const int64_t gone = GoneOf(pruned);
  if (out.json()) {
    JsonWriter json;
    json.BeginObject().Field("event", "done").Field("status", 0).Field("dry_run", dry_run);
    json.Key("removed").BeginArray();
    for (const KeptSnapshot& kept : pruned.snapshots)
      if (kept.reasons.empty()) json.String(kept.snapshot.Id());
    json.EndArray().Key("kept").BeginArray();
    for (const KeptSnapshot& kept : pruned.snapshots) {
      if (kept.reasons.empty()) continue;
      json.BeginObject().Field("id", kept.snapshot.Id()).Field("why", kept.reasons).EndObject();
    }
    json.EndArray().Field("removed_packs", data.removed_packs).Field("removed_bytes", data.removed_bytes);
    json.Field("copied_bytes", data.copied_bytes).Field("kept_packs", data.kept_packs);
    json.Field("kept_bytes", data.kept_bytes).Field("waiting_packs", data.waiting_packs);
    if (!data.not_cleaned.empty()) json.Field("not_cleaned", data.not_cleaned);
    out.Json(json.EndObject().Text());
    return;
  }
  const auto kept = static_cast<int64_t>(pruned.snapshots.size()) - gone;
  out.Line(StrCat(dry_run ? "would remove " : "removed ", CountOf(gone, "snapshot"), ", keeps ", kept, "; ",
                  dry_run ? "would free " : "freed ", FormatBytes(data.removed_bytes), " in ",
                  CountOf(data.removed_packs, "pack"), ", keeps ", FormatBytes(data.kept_bytes)));
  if (dry_run && gone > 0) out.Note("what only those snapshots need is not counted yet");
  if (data.waiting_packs > 0) {
    out.Note(StrCat(CountOf(data.waiting_packs, "pack"), " will go with the next prune: ",
                    data.writers.empty() ? "a backup is running" : Join(data.writers, "; ")));
  }
  if (!data.not_cleaned.empty())
    out.Note(StrCat("leftovers of killed uploads could not be removed: ", data.not_cleaned));
}

Result<int> RunWorkspacePrune(World& world, const Args& args) {
  OC_TRY(rules, ReadRules(world, args));
  OC_TRY(opened, OpenWorkspace(world, args.words().empty() ? "" : args.words()[0]));
  ProgressMeter meter(world.out(), world.clock());
  WorkspacePruneRequest request;
  request.rules = rules;
  request.dry_run = args.Has("--dry-run");
  request.progress = [&](const std::string& step, int64_t done, int64_t total) {
    meter.Show({"prune", step, done, total, 0, 0});
  };
  OC_TRY(pruned, PruneWorkspace(opened.workspaces, opened.found.workspace, opened.repository, request));
  if (!world.out().json()) PrintSnapshots(world, pruned, request.dry_run);
  PrintDone(world, pruned, request.dry_run);
  if (!rules.Any()) {
    world.out().Note(
        "no rule was given, so every snapshot stays; --keep-last, --keep-daily and others, or "
        "workspaces.keep "
        "of the configuration, say what shall go");
  }
  return 0;
}

}  // namespace

constinit const Command kWorkspacePrune = {
    .name = "workspace prune",
    .summary = "remove old snapshots by rules, and what nothing needs any more",
    .usage = "[NAME] [--keep-last N] [--keep-daily N] ... [--dry-run]",
    .flags = kWorkspacePruneFlags,
    .max_words = 1,
    .run = RunWorkspacePrune,
    .group = CommandGroup::kCode,
};

}  // namespace overcap::cli
