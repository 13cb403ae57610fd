// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>
#include <unistd.h>

#include "base/json_writer.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/table.h"
#include "cli/world.h"
#include "control/environment.h"
#include "model/host_list.h"

namespace overcap::cli {
namespace {

constexpr Flag kEnvFlags[] = {
    {"--export", "", "", "print it as lines for a shell"},
    {"--save", "", "", "keep it for later shells"},
    {"--load", "", "", "print what was saved as lines for a shell; of the job JOB, else the latest"},
    {"--expand", "", "LIST", "print the hosts of a list like n[1-4], one per line; '-': lists from stdin"},
    {"--compress", "", "", "print the list of the hosts given as words, else on stdin"},
};
constexpr size_t kMaxInput = size_t{256} << 20;

std::string HostsOf(const Allocation& allocation) {
  std::vector<std::string> names;
  for (const AllocatedHost& host : allocation.hosts) names.push_back(host.name);
  return CompressHostList(names);
}

// ---- where this shell is

void PrintText(Output& out, const EnvironmentReport& report) {
  const Allocation& found = report.allocation;
  const Allocation::Reasons& why = found.reasons;
  const int64_t hosts = static_cast<int64_t>(found.hosts.size());
  Table table({{"WHAT"}, {"VALUE", false, true}, {"WHY", false, true}});
  table.AddRow({"machine", found.machine, why.machine});
  table.AddRow({"scheduler", SchedulerName(found.scheduler), why.scheduler});
  table.AddRow({"job", found.in_job ? found.job_id : "none", why.job_id});
  table.AddRow({"hosts", StrCat(HostsOf(found), " (", CountOf(hosts, "host"), ")"), why.hosts});
  table.AddRow({"GPUs per host", GpusPerHostText(found), why.gpus});
  if (!found.gpu_type.empty()) table.AddRow({"GPU type", found.gpu_type, why.gpu_type});
  table.AddRow(
      {"world size", report.world_size > 0 ? StrCat(report.world_size) : "-", report.world_size_reason});
  table.AddRow({"launcher", report.launcher.empty() ? "none" : report.launcher, report.launcher_reason});
  if (!found.restored.empty()) {
    table.AddRow({"restored", CountOf(static_cast<int64_t>(found.restored.size()), "variable"),
                  "eval \"$(overcap env --export)\" sets them here"});
  }
  out.Print(table);
  if (report.launch_command.empty()) return;
  out.Line(StrCat("launch command:\n  ", ShellJoin(report.launch_command)));  // never shortened
}

void WriteObject(JsonWriter* json, const NamedValues& values) {
  json->BeginObject();
  for (const auto& [name, value] : values) json->Field(name, value);
  json->EndObject();
}

std::string AsJson(const EnvironmentReport& report) {
  const Allocation& found = report.allocation;
  JsonWriter json;
  json.BeginObject().Field("machine", found.machine).Field("scheduler", SchedulerName(found.scheduler));
  json.Field("in_job", found.in_job).Field("job_id", found.job_id).Field("this_host", found.this_host);
  json.Field("host_list", HostsOf(found)).Key("hosts").BeginArray();
  int most = 0;
  for (const AllocatedHost& host : found.hosts) {
    json.BeginObject()
        .Field("name", host.name)
        .Field("slots", host.slots)
        .Field("gpus", host.gpus)
        .EndObject();
    most = std::max(most, host.gpus);
  }
  json.EndArray().Field("gpus_per_host", most).Field("gpu_type", found.gpu_type);
  json.Field("world_size", report.world_size).Field("launcher", report.launcher);
  json.Field("launch_command", report.launch_command).Field("started_by", found.started_by).Key("restored");
  WriteObject(&json, found.restored);
  json.Field("warnings", found.warnings).Key("reasons");
  WriteObject(&json, {{"machine", found.reasons.machine},
                      {"scheduler", found.reasons.scheduler},
                      {"job_id", found.reasons.job_id},
                      {"hosts", found.reasons.hosts},
                      {"gpus_per_host", found.reasons.gpus},
                      {"gpu_type", found.reasons.gpu_type},
                      {"world_size", report.world_size_reason},
                      {"launcher", report.launcher_reason}});
  return json.EndObject().Take();
}

Result<EnvironmentReport> Describe(World& world) {
  OC_TRY_VOID(world.LoadConfig());
  const LaunchWorld around{
      world.root(),   world.binary(), world.Folder().value_or("/"), world.user(), world.clock(),
      world.random(), world.config(), Variables::OfThisProcess()};
  OC_TRY(report, DescribeEnvironment(around));
  for (const std::string& warning : report.allocation.warnings) world.out().Warn(warning);
  return report;
}

Result<int> RunShow(World& world) {
  OC_TRY(report, Describe(world));
  world.out().json() ? world.out().Json(AsJson(report)) : PrintText(world.out(), report);
  return 0;
}

// ---- for other shells

void PrintValues(Output& out, const NamedValues& values) {
  if (!out.json()) return out.Write(ExportLines(values));
  JsonWriter json;
  WriteObject(&json, values);
  out.Json(json.Text());
}

Result<int> RunExport(World& world) {
  OC_TRY(report, Describe(world));
  NamedValues values = report.allocation.restored;
  values.insert(values.end(), report.facts.begin(), report.facts.end());
  PrintValues(world.out(), values);
  return 0;
}

Result<int> RunSave(World& world) {
  OC_TRY(report, Describe(world));
  OC_TRY(file, SaveReport(report, world.root()));
  if (world.out().json()) {
    world.out().Json(JsonWriter().BeginObject().Field("file", file).EndObject().Text());
  } else {
    world.out().Line(file);
    world.out().Note("eval \"$(overcap env --load)\" restores it in another shell");
  }
  return 0;
}

Result<int> RunLoad(World& world, const Args& args) {
  const std::string job = args.words().empty() ? "" : args.words()[0];
  OC_TRY(loaded, LoadReport(world.root(), job, Variables::OfThisProcess()));
  if (!loaded.warning.empty()) world.out().Warn(loaded.warning);
  PrintValues(world.out(), loaded.saved.values);
  return 0;
}

// ---- host lists

Result<std::string> ReadStdin() {
  if (isatty(STDIN_FILENO) != 0) return Fail(ErrorCode::kUsage, "no host was given", "overcap env --help");
  std::string text;
  char chunk[65536];
  for (ssize_t size; (size = read(STDIN_FILENO, chunk, sizeof chunk)) != 0;) {
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return Fail(ErrnoError(errno, "cannot read stdin"));
    text.append(chunk, static_cast<size_t>(size));
    if (text.size() > kMaxInput) return Fail(ErrorCode::kUsage, "there is too much on stdin");
  }
  return text;
}

// Each line or word may be a list itself.
Result<std::vector<std::string>> ExpandAll(const std::vector<std::string>& lists) {
  std::vector<std::string> all;
  for (const std::string& list : lists) {
    OC_TRY(hosts, ExpandHostList(list));
    if (all.size() + hosts.size() > kMaxHosts) {
      return Fail(ErrorCode::kUsage, StrCat("there are more than ", kMaxHosts, " hosts"));
    }
    all.insert(all.end(), std::make_move_iterator(hosts.begin()), std::make_move_iterator(hosts.end()));
  }
  return all;
}

Result<int> RunExpand(World& world, const Args& args) {
  std::vector<std::string> lists = {std::string(args.Get("--expand"))};
  if (lists[0] == "-") {
    OC_TRY(text, ReadStdin());
    lists = Split(text, '\n');
  }
  OC_TRY(hosts, ExpandAll(lists));
  if (world.out().json()) {
    world.out().Json(JsonWriter().BeginObject().Field("hosts", hosts).EndObject().Text());
  } else {
    std::string text;
    for (const std::string& host : hosts) text.append(host).append("\n");
    world.out().Write(text);
  }
  return 0;
}

Result<int> RunCompress(World& world, const Args& args) {
  std::vector<std::string> words = args.words();
  if (words.empty() || words == std::vector<std::string>{"-"}) {
    OC_TRY(text, ReadStdin());
    words = Split(text, '\n');
  }
  OC_TRY(hosts, ExpandAll(words));
  const std::string list = CompressHostList(hosts);
  if (world.out().json()) {
    world.out().Json(JsonWriter().BeginObject().Field("host_list", list).EndObject().Text());
  } else if (!list.empty()) {
    world.out().Line(list);
  }
  return 0;
}

Result<std::string_view> ReadMode(const Args& args) {
  std::string_view mode;
  for (const Flag& flag : kEnvFlags) {
    if (!args.Has(flag.name)) continue;
    if (!mode.empty())
      return Fail(ErrorCode::kUsage, StrCat(mode, " and ", flag.name, " exclude each other"));
    mode = flag.name;
  }
  const size_t most = mode == "--compress" ? SIZE_MAX : mode == "--load" ? 1 : 0;
  if (args.words().size() > most) {
    return Fail(ErrorCode::kUsage, StrCat("'", ToUtf8(args.words()[most]), "' is one word too many"),
                "overcap env --help");
  }
  return mode;
}

Result<int> RunEnv(World& world, const Args& args) {
  OC_TRY(mode, ReadMode(args));
  if (mode == "--export") return RunExport(world);
  if (mode == "--save") return RunSave(world);
  if (mode == "--load") return RunLoad(world, args);
  if (mode == "--expand") return RunExpand(world, args);
  if (mode == "--compress") return RunCompress(world, args);
  return RunShow(world);
}

}  // namespace

constinit const Command kEnv = {
    .name = "env",
    .summary = "show the scheduler, job, hosts and GPUs of this shell, and why; expand host lists",
    .usage = "[--export | --save | --load [JOB] | --expand LIST | --compress [HOST...]]",
    .flags = kEnvFlags,
    .run = RunEnv,
    .group = CommandGroup::kSetup,
    .without_config = true,
};

}  // namespace overcap::cli
