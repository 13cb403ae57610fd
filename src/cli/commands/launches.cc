// SPDX-License-Identifier: Apache-2.0
#include "control/launches.h"

#include "base/json_writer.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/commands/rank_words.h"
#include "cli/table.h"
#include "cli/world.h"
#include "control/elastic/group_story.h"

namespace overcap::cli {
namespace {

constexpr int kMost = 1'000'000'000;
constexpr size_t kShown = 20;

constexpr Flag kLaunchesFlags[] = {
    {"--rank", "-r", "RANKS", "what these wrote: 0, 0,2 or all"},
    {"--times", "", "", "with the time of each line before it"},
    {"--attempt", "", "N", "of that attempt; the last by default"},
    {"--all", "-a", "", "list all of them, not only the last 20"},
};

std::string StateOf(const LaunchRecord& launch) {
  if (!launch.ended) return "no end";
  return launch.exit_status == 0 ? "ok" : StrCat("exit ", launch.exit_status);
}

void WriteJson(const LaunchRecord& launch, JsonWriter* out) {
  out->BeginObject().Field("id", launch.id).Field("folder", launch.folder).Field("command", launch.command);
  out->Field("launcher", launch.launcher).Field("scheduler", launch.scheduler).Field("job_id", launch.job_id);
  out->Field("world_size", launch.world_size).Field("started_us", launch.started_us);
  out->Field("ended", launch.ended).Field("ended_us", launch.ended_us);
  out->Field("exit_status", launch.exit_status).Field("attempts", launch.attempts);
  out->Field("message", launch.message).EndObject();
}

Result<int> PrintList(World& world, bool all) {
  OC_TRY(launches, ListLaunches(world.root()));
  const size_t from = all || launches.size() <= kShown ? 0 : launches.size() - kShown;
  if (world.out().json()) {
    JsonWriter json;
    json.BeginArray();
    for (size_t i = from; i < launches.size(); ++i) WriteJson(launches[i], &json);
    world.out().Json(json.EndArray().Text());
    return 0;
  }
  if (launches.empty()) {
    world.out().Note("no launches");
    return 0;
  }
  Table table({{"ID"}, {"STARTED"}, {"RANKS"}, {"END"}, {"COMMAND"}});
  for (size_t i = from; i < launches.size(); ++i) {
    const LaunchRecord& launch = launches[i];
    table.AddRow({launch.id, FormatTimeLocal(launch.started_us), std::to_string(launch.world_size),
                  StateOf(launch), ShellJoin(launch.command)});
  }
  world.out().Print(table);
  return 0;
}

Result<int> PrintOne(World& world, const LaunchRecord& launch) {
  const GroupStory story = ReadGroupStory(launch.folder);
  if (world.out().json()) {
    JsonWriter json;
    WriteJson(launch, &json);
    std::string text = json.Take();
    if (!story.json.empty()) {  // one more field of the object
      text.pop_back();
      text += StrCat(",\"events\":[", Join(story.json, ","), "]}");
    }
    world.out().Json(text);
    return 0;
  }
  Output& out = world.out();
  out.Line(StrCat("launch    ", launch.id));
  out.Line(StrCat("command   ", ToUtf8(ShellJoin(launch.command))));
  out.Line(StrCat("ranks     ", launch.world_size, " by ", launch.launcher));
  out.Line(StrCat("started   ", FormatTimeLocal(launch.started_us)));
  const std::string after =
      launch.ended ? StrCat(" after ", FormatElapsed(launch.ended_us - launch.started_us)) : "";
  out.Line(StrCat("end       ", launch.ended ? StateOf(launch) : "it runs, or was killed", after));
  if (!launch.message.empty()) out.Line(StrCat("why       ", launch.message));
  out.Line(StrCat("logs      ", launch.folder));
  if (!story.lines.empty()) out.Line("group");
  for (const std::string& line : story.lines) out.Line("  " + line);
  return 0;
}

Result<int> RunLaunches(World& world, const Args& args) {
  const bool logs = args.Has("--rank") || args.Has("--times");
  if (args.Has("--attempt") && !logs)
    return Fail(ErrorCode::kUsage, "--attempt: say also of which ranks",
                "overcap launches --rank all --attempt N");
  if (args.words().empty() && !logs) return PrintList(world, args.Has("--all"));
  OC_TRY(launch, FindLaunch(world.root(), args.words().empty() ? "latest" : args.words()[0]));
  if (!logs) return PrintOne(world, launch);
  LaunchLogRequest request;
  OC_TRY(ranks, ReadRanks(args));
  OC_TRY(attempt, args.GetInt("--attempt", 0, 1, kMost));
  request.ranks = std::move(ranks);
  request.attempt = static_cast<int>(attempt);
  request.times = args.Has("--times");
  OC_TRY(text, LaunchLogText(launch, request));
  world.out().Write(text);
  return 0;
}

}  // namespace

constinit const Command kLaunches = {
    .name = "launches",
    .summary = "the launches of this machine, how they ended, what their ranks wrote and when",
    .usage = "[--rank R] [--times] [--attempt N] [LAUNCH]",
    .flags = kLaunchesFlags,
    .max_words = 1,
    .run = RunLaunches,
};

}  // namespace overcap::cli
