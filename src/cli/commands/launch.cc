// SPDX-License-Identifier: Apache-2.0
#include "control/launch.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "base/json_writer.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/commands/launch_elastic.h"
#include "cli/commands/rank.h"
#include "cli/commands/torchrun_console.h"
#include "cli/commands/torchrun_flags.h"
#include "cli/world.h"
#include "control/elastic/elastic_launch.h"
#include "sys/process.h"

namespace overcap::cli {
namespace {

constexpr int kMost = 1'000'000;
constexpr int64_t kSecond = 1'000'000;

constexpr Flag kOwnFlags[] = {
    {"--ranks", "-n", "N", "ranks in all; one per GPU of every host"},
    {"--ppn", "", "P", "ranks per host"},
    {"--hostfile", "", "FILE", "hosts, one per line: 'host', 'host slots=4', 'host:4'"},
    {"--cpu-bind", "", "HOW", "processors of each rank: none, cores, depth:N, list:0-3:4-7"},
    {"--launcher", "", "WHICH", "auto, srun, mpiexec, mpirun, ssh or local"},
    {"--launcher-args", "", "WORDS", "handed to srun or mpiexec as they are", true},
    {"--timeout", "", "IDLE", "stop when no rank writes anything for so long: 10m"},
    {"--retries", "", "N", "start all ranks again after a failure, so often"},
    {"--spare-nodes", "", "N", "keep hosts in reserve for a retry"},
    {"--logs", "", "FOLDER", "where the logs go"},
    {"--pipes", "", "", "ranks write into pipes, not into their logs themselves"},
    {"--grace", "", "TIME", "between TERM and KILL when ranks are stopped; 30s"},
    {"--dry-run", "", "", "print what would be run, run nothing"},
    {"--rdzv", "", "WHERE", "elastic: etcd://H1:2379,H2:2379/ID, tcp://HOST:PORT/ID or auto"},
    {"--rdzv-open", "", "", "elastic: no key; anyone who reaches the port of tcp:// may join"},
    {"--grow", "", "WHEN", "elastic: take new nodes now, at-checkpoint or never"},
    {"--join-timeout", "", "TIME", "elastic: wait so long for enough nodes; 10m"},
    {"--last-call", "", "TIME", "elastic: wait so long for more nodes than needed; 1s"},
    {"--hang-timeout", "", "TIME", "elastic: restart when ranks are silent for so long"},
    {"--ttl", "", "TIME", "elastic: a node that is silent for so long is lost; 5s"},
};

constexpr auto kLaunchFlags = [] {
  std::array<Flag, std::size(kOwnFlags) + std::size(kTorchrunFlags)> all{};
  std::ranges::copy(kOwnFlags, all.begin());
  std::ranges::transform(kTorchrunFlags, all.begin() + std::size(kOwnFlags), &TorchrunFlag::flag);
  return all;
}();

// As srun, the MPIs and torchrun call them.
constexpr FlagSynonym kSynonyms[] = {
    {"-np", "-n"},
    {"--np", "-n"},
    {"--nproc", "-n"},
    {"--ntasks", "-n"},
    {"-ppn", "--ppn"},
    {"-npernode", "--ppn"},
    {"--npernode", "--ppn"},
    {"--ntasks-per-node", "--ppn"},
    {"-N", "--nnodes"},
    {"--nodes", "--nnodes"},
    {"-f", "--hostfile"},
    {"-hostfile", "--hostfile"},
    {"--machinefile", "--hostfile"},
};

// Tells what happens on stderr; stdout is the ranks'.
class Voice : public LaunchVoice {
 public:
  explicit Voice(Output* out) : out_(*out) {}
  void Note(const std::string& text) override {
    if (out_.terminal().err_is_terminal) out_.Note(text);
  }
  void Warn(const std::string& text) override { out_.Warn(text); }
  void Say(const std::string& text) override {
    if (!out_.json()) out_.WriteAside(text + "\n");
  }
  void Failure(const LaunchFailure& failure) override {
    if (out_.json()) return out_.WriteAside(FailureJson(failure) + "\n");
    out_.PrintError({ErrorCode::kInternal, failure.line, failure.hint});
    std::string text;
    if (!failure.shown)
      for (const std::string& line : LastLines(failure)) text += StrCat("  | ", line, "\n");
    if (!text.empty()) text.insert(0, "the last lines that it wrote:\n");
    if (!failure.stacks.empty()) text += StrCat("where each rank was: ", failure.stacks, "\n");
    if (!failure.logs.empty()) text += StrCat("logs of all ranks: ", failure.logs, "\n");
    out_.WriteAside(text);
  }

 private:
  static std::vector<std::string> LastLines(const LaunchFailure& failure) {
    const std::string_view lines = Trim(failure.last_lines);
    return lines.empty() ? std::vector<std::string>() : Split(lines, '\n');
  }
  static std::string FailureJson(const LaunchFailure& failure) {
    JsonWriter json;
    json.BeginObject().Key("error").BeginObject();
    json.Field("code", failure.cause)
        .Field("message", ToUtf8(failure.line))
        .Field("hint", failure.hint)
        .EndObject();
    json.Field("attempt", failure.attempt).Field("logs", ToUtf8(failure.logs));
    json.Field("stacks", ToUtf8(failure.stacks)).Key("last_lines").BeginArray();
    for (const std::string& line : LastLines(failure)) json.String(line);
    return json.EndArray().EndObject().Take();
  }

  Output& out_;
};

Result<int> Count(const Args& args, std::string_view flag, int min) {
  OC_TRY(value, args.GetInt(flag, 0, min, kMost));
  return static_cast<int>(value);
}

Result<int64_t> Duration(const Args& args, std::string_view flag, int64_t absent_us) {
  if (!args.Has(flag)) return absent_us;
  OC_TRY(seconds, OfFlag(args.Typed(flag), ParseDurationSeconds(args.Get(flag))));
  return seconds * kSecond;
}

Result<Tee> ReadTee(const Args& args) {
  const std::string_view what = args.Has("--tee") ? args.Get("--tee") : "0";
  if (what == "0") return Tee::kRank0;
  if (what == "all" || what == "3" || IsTorchrunTee(what)) return Tee::kAll;
  if (what == "none") return Tee::kNone;
  if (what == "plain") return Tee::kPlain;
  return Fail(ErrorCode::kUsage, StrCat("--tee: '", what, "' is not 0, all, plain or none"));
}

Result<void> ReadPlan(const Args& args, PlanRequest* plan) {
  OC_TRY(ranks, Count(args, "--ranks", 1));
  OC_TRY(per_node, Count(args, "--ppn", 1));
  int nodes = 0;
  if (!AsksForElastic(args)) {
    OC_TRY(count, Count(args, "--nnodes", 1));
    nodes = count;
  }
  OC_TRY(spares, Count(args, "--spare-nodes", 0));
  *plan = {ranks, per_node, nodes, spares};
  return {};
}

Result<LaunchOptions> ReadOptions(const Args& args) {
  LaunchOptions options;
  options.command = args.words();
  OC_TRY_VOID(ReadPlan(args, &options.plan));
  options.hostfile = args.Get("--hostfile");
  options.cpu_bind = args.Get("--cpu-bind");
  if (args.Has("--launcher")) options.launcher = args.Get("--launcher");
  if (options.launcher.empty()) return Fail(ErrorCode::kUsage, "--launcher: must not be empty");
  for (const std::string& line : args.All("--launcher-args")) {
    const auto words = SplitWords(line);
    if (!words)
      return Fail(ErrorCode::kUsage, StrCat("--launcher-args: a quote is not closed in '", line, "'"));
    options.launcher_args.insert(options.launcher_args.end(), words->begin(), words->end());
  }
  OC_TRY(idle, Duration(args, "--timeout", 0));
  OC_TRY(shutdown, args.GetInt("--shutdown-timeout", options.grace_us / kSecond, 0, kMost));
  OC_TRY(grace, Duration(args, "--grace", shutdown * kSecond));
  OC_TRY(retries, Count(args, "--retries", 0));
  OC_TRY(tee, ReadTee(args));
  OC_TRY(port, args.GetInt("--master-port", 0, 1, 65535));
  options.idle_us = idle;
  options.grace_us = grace;
  options.retries = retries;
  options.tee = tee;
  options.pipes = args.Has("--pipes");
  options.logs_below = args.LastOf({"--logs", "--log-dir"}) == "--log-dir";
  options.logs = args.Get(options.logs_below ? "--log-dir" : "--logs");
  options.master_port = static_cast<int>(port);
  return options;
}

// Whoever means to be in a job and is not would else compute on a login node without knowing it.
std::string NotInAJob(const PreparedLaunch& prepared) {
  const Allocation& found = prepared.allocation;
  const bool slurm = found.scheduler == SchedulerKind::kSlurm;
  if ((!slurm && found.scheduler != SchedulerKind::kPbs) || found.in_job || !found.started_by.empty())
    return "";
  return StrCat("you are in no ", slurm ? "Slurm" : "PBS", " job: ranks run on ",
                prepared.plan.hosts.size() == 1 ? prepared.plan.hosts[0].name : "the hosts of the host file",
                "; '", slurm ? "salloc" : "qsub -I", "' gives you hosts");
}

Result<int> RunElastic(const Args& args, const LaunchOptions& common, const LaunchWorld& around,
                       Output* out) {
  OC_TRY(options, ReadElastic(args, common, around));
  if (args.Has("--dry-run")) {
    return Fail(ErrorCode::kUsage, "--dry-run: what an elastic group will run depends on who joins it");
  }
  const auto program = ResolveProgram(options.command[0], around.variables.Get("PATH"), around.folder);
  if (!program) return CommandProblem(program.error(), out);
  OC_TRY_VOID(out->Flush());
  Voice voice(out);
  return RunElasticLaunch(std::move(options), around, &voice);
}

Result<int> NoCommand(World& world, const Args& args) {
  if (!args.Has("--print-completion"))
    return Fail(ErrorCode::kUsage, "no command was given", StrCat("usage: overcap launch ", kLaunch.usage));
  Args shell;
  shell.words_ = {std::string(args.Get("--print-completion"))};
  return kCompletion.run(world, shell);
}

Result<int> DoLaunch(World& world, const Args& given) {
  OC_TRY(args, WithTorchrunVariables(given, Variables::OfThisProcess()));
  if (args.words().empty() || args.Has("--print-completion")) return NoCommand(world, args);
  OC_TRY(options, ReadOptions(args));
  OC_TRY(folder, world.Folder());
  if (!options.logs.empty() && options.logs[0] != '/') options.logs.insert(0, folder + "/");
  const LaunchWorld around{world.root(),  world.binary(), std::move(folder), world.user(),
                           world.clock(), world.random(), world.config(),    Variables::OfThisProcess()};
  Output& out = world.out();
  if (const std::string ignored = IgnoredFlags(args); !ignored.empty()) out.Note(ignored);
  if (AsksForElastic(args)) return RunElastic(args, options, around, &out);
  OC_TRY_VOID(GivePython(args, around, false, &options.command));
  OC_TRY(prepared, PrepareLaunch(options, around));
  for (const std::string& warning : prepared.allocation.warnings) out.Warn(warning);
  if (const std::string note = NotInAJob(prepared); !note.empty()) out.Note(note);
  if (prepared.launcher.flavour == Flavour::kLocal && prepared.allocation.started_by.empty()) {
    const auto program = ResolveProgram(options.command[0], PathOf(prepared.env), around.folder);
    if (!program) return CommandProblem(program.error(), &out);
  }
  if (args.Has("--dry-run")) {
    out.json() ? out.Json(LaunchJson(prepared, options)) : out.Line(LaunchText(prepared, options));
    return 0;
  }
  OC_TRY_VOID(out.Flush());
  if (!prepared.allocation.started_by.empty()) return BecomeRank(options.command, around.folder);
  Voice voice(&out);
  return RunLaunch(options, std::move(prepared), around, &voice);
}

}  // namespace

constinit const Command kLaunch = {
    .name = "launch",
    .summary = "start a command as one rank per GPU on every host of this allocation",
    .usage = "[-n N] [--ppn P] [--nnodes N] [--hostfile FILE] CMD...",
    .flags = kLaunchFlags,
    .takes_command = true,
    .run = DoLaunch,
    .synonyms = kSynonyms,
    .underscores = true,
    .other_flags = "flags of srun or mpiexec go behind --launcher-args",
};

}  // namespace overcap::cli
