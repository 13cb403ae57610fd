// SPDX-License-Identifier: Apache-2.0
#include "control/policy_apply.h"

#include <algorithm>

#include "base/json_writer.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/world.h"
#include "control/policy_file.h"

namespace overcap::cli {
namespace {

constexpr Flag kPolicyApplyFlags[] = {
    {"--dry-run", "-n", "", "only show what is different"},
    {"--write", "", "FOLDER",
     "write the scheduler's settings and partitions into a file there, and have it read them"},
};

void PrintJson(const PolicyApplied& applied, bool dry_run, Output& out) {
  const auto settings = [](const std::vector<PolicySetting>& all, JsonWriter* json) {
    json->BeginArray();
    for (const PolicySetting& one : all) {
      json->BeginObject().Field("name", one.name).Field("now", one.now).Field("wanted", one.wanted);
      json->Field("restart", one.restart).EndObject();
    }
    json->EndArray();
  };
  JsonWriter json;
  json.BeginObject().Field("dry_run", dry_run).Field("nothing", applied.nothing()).Key("steps").BeginArray();
  for (const PolicyStep& step : applied.found.steps)
    json.BeginObject().Field("text", step.text).Field("argv", step.argv).EndObject();
  json.EndArray().Field("made", applied.made).Key("failed").BeginArray();
  for (const Error& error : applied.failed) json.String(error.message);
  json.EndArray().Field("file", applied.file).Key("settings");
  settings(applied.found.settings, &json);
  settings(applied.left, &json.Key("left"));
  out.Json(json.Field("notes", applied.found.notes).EndObject().Text());
}

void PrintSettings(const std::vector<PolicySetting>& settings, Output& out) {
  for (const PolicySetting& one : settings) {
    out.Line(StrCat("  ", one.name, ": ", one.now.empty() ? "(nothing)" : one.now, " -> ", one.wanted,
                    one.restart ? "   [needs a restart of the controller]" : ""));
  }
}

void PrintDifference(const PolicyApplied& applied, Output& out) {
  for (const PolicyStep& step : applied.found.steps) out.Line(StrCat("  ", step.text));
  if (!applied.found.settings.empty()) out.Line("settings of the scheduler that are different:");
  PrintSettings(applied.found.settings, out);
}

void PrintResult(const PolicyApplied& applied, const std::string& folder, Output& out) {
  if (applied.made > 0) out.Line(StrCat(CountOf(static_cast<int64_t>(applied.made), "change"), " made"));
  for (const Error& error : applied.failed) out.Warn(error.message);
  if (!applied.file.empty()) out.Line(StrCat("written: ", applied.file));
  if (applied.left.empty()) return;
  out.Line("left to do in the files of the scheduler:");
  PrintSettings(applied.left, out);
  const bool restart = std::ranges::any_of(applied.left, &PolicySetting::restart);
  if (folder.empty())
    out.Note("'--write FOLDER' writes these lines; 'overcap policy render' prints them");
  else
    out.Note(StrCat("does the scheduler's own file include ", folder, "/", applied.found.file.name, "?",
                    restart ? " Restart its controller where that is said, then run this again" : ""));
}

Result<int> RunPolicyApply(World& world, const Args& args) {
  OC_TRY(text, PolicyFileText(args.words()[0]));
  OC_TRY(policy, ParsePolicy(text, args.words()[0]));
  OC_TRY(cluster, world.GetCluster());
  Output& out = world.out();
  PolicyApplyOptions options;
  options.dry_run = args.Has("--dry-run");
  options.text = std::move(text);
  options.folder = args.Get("--write");
  if (args.Has("--write") && options.folder.empty())
    return Fail(ErrorCode::kUsage, "--write needs the name of a folder");
  options.before_step = [&](const PolicyStep& step) {
    if (!out.json()) out.Line(StrCat("  ", step.text));
  };
  OC_TRY(applied, ApplyPolicy(*cluster, policy, options));
  const bool done = options.dry_run || (applied.left.empty() && applied.failed.empty());
  const int status = done ? 0 : ExitStatus(ErrorCode::kConflict);
  if (out.json()) {
    PrintJson(applied, options.dry_run, out);
    return status;
  }
  for (const std::string& note : applied.found.notes) out.Note(note);
  if (applied.nothing()) {
    out.Line("nothing to change");
    return status;
  }
  if (options.dry_run)
    PrintDifference(applied, out);
  else
    PrintResult(applied, options.folder, out);
  return status;
}

}  // namespace

constinit const Command kPolicyApply = {
    .name = "policy apply",
    .summary = "bring a policy to a live cluster: show what is different, and make it so",
    .usage = "[--dry-run] [--write FOLDER] FILE",
    .flags = kPolicyApplyFlags,
    .min_words = 1,
    .max_words = 1,
    .run = RunPolicyApply,
    .group = CommandGroup::kSetup,
};

}  // namespace overcap::cli
