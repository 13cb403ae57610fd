// SPDX-License-Identifier: Apache-2.0
#include "control/policy_apply.h"

#include "base/json_writer.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/world.h"
#include "control/policy_file.h"

namespace overcap::cli {
namespace {

constexpr Flag kPolicyApplyFlags[] = {
    {"--dry-run", "-n", "", "only show what is different"},
};
constexpr FlagSynonym kSynonyms[] = {
    {"--write", "it prints the lines that slurm.conf needs and writes no file: put them there yourself"},
};

void PrintJson(const PolicyApplied& applied, bool dry_run, Output& out) {
  const PolicyDifference& found = applied.found;
  JsonWriter json;
  json.BeginObject().Field("dry_run", dry_run).Field("nothing", applied.nothing()).Key("steps").BeginArray();
  for (const PolicyStep& step : found.steps)
    json.BeginObject().Field("text", step.text).Field("argv", step.argv).EndObject();
  json.EndArray().Field("made", applied.made).Key("failed").BeginArray();
  for (const Error& error : applied.failed) json.String(error.message);
  json.EndArray().Key("settings").BeginArray();
  for (const PolicySetting& one : found.settings)
    json.BeginObject()
        .Field("why", one.why)
        .Field("line", one.line)
        .Field("restart", one.restart)
        .EndObject();
  json.EndArray().Field("blocked", found.blocked ? found.blocked->message : "");
  out.Json(json.Field("notes", found.notes).EndObject().Text());
}

// What an administrator can copy: the reasons are comments.
void PrintSettings(const PolicyDifference& found, Output& out) {
  if (found.settings.empty()) return;
  out.Line(
      StrCat("# ", found.file, " must have these lines, in place of any for the same setting or partition:"));
  for (const PolicySetting& one : found.settings) {
    out.Line(StrCat("# ", one.why));
    if (!one.line.empty()) out.Line(one.line);
  }
  out.Note(StrCat("Overcap does not write ", found.file, ": add the lines, then ", found.then,
                  ", then run it again"));
}

Result<int> RunPolicyApply(World& world, const Args& args) {
  OC_TRY(text, PolicyFileText(args.words()[0]));
  OC_TRY(policy, ParsePolicy(text, args.words()[0]));
  OC_TRY(cluster, world.GetCluster());
  Output& out = world.out();
  PolicyApplyOptions options;
  options.dry_run = args.Has("--dry-run");
  options.text = std::move(text);
  options.before_step = [&](const PolicyStep& step) {
    if (!out.json()) out.Line(StrCat("  ", step.text));
  };
  OC_TRY(applied, ApplyPolicy(*cluster, policy, options));
  const bool done = options.dry_run || (applied.found.settings.empty() && applied.failed.empty());
  const int status = done ? 0 : ExitStatus(ErrorCode::kConflict);
  if (out.json()) {
    PrintJson(applied, options.dry_run, out);
    return status;
  }
  for (const std::string& note : applied.found.notes) out.Note(note);
  if (applied.nothing()) out.Line("nothing to change");
  if (options.dry_run) {
    for (const PolicyStep& step : applied.found.steps) out.Line(StrCat("  ", step.text));
    if (applied.found.blocked) out.Warn(applied.found.blocked->message);
  }
  if (applied.made > 0) out.Line(StrCat(CountOf(static_cast<int64_t>(applied.made), "change"), " made"));
  for (const Error& error : applied.failed) out.Warn(error.message);
  PrintSettings(applied.found, out);
  return status;
}

}  // namespace

constinit const Command kPolicyApply = {
    .name = "policy apply",
    .summary = "bring a policy to a live cluster: show what is different, and make it so",
    .usage = "[--dry-run] FILE",
    .flags = kPolicyApplyFlags,
    .min_words = 1,
    .max_words = 1,
    .run = RunPolicyApply,
    .group = CommandGroup::kSetup,
    .synonyms = kSynonyms,
};

}  // namespace overcap::cli
