// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/launch_elastic.h"

#include <algorithm>
#include <string_view>
#include <unistd.h>

#include "base/text.h"
#include "base/units.h"
#include "cli/commands/torchrun_flags.h"
#include "cli/commands/torchrun_words.h"
#include "control/elastic/elastic_launch.h"
#include "sys/devices.h"
#include "sys/process.h"

namespace overcap::cli {
namespace {

constexpr int64_t kSecond = 1'000'000;
// Beside those of torchrun.
constexpr std::string_view kElasticFlags[] = {"--rdzv",      "--rdzv-open",    "--grow", "--join-timeout",
                                              "--last-call", "--hang-timeout", "--ttl"};

Result<int> NumberOf(const Args& args, std::string_view flag, int least, int absent) {
  return WholeNumber(args.Typed(flag), args.Get(flag), least, absent);
}

// As ParseDurationSeconds, with parts of a second too: "0.5", "500ms"; 0 is none.
Result<int64_t> Time(const Args& args, std::string_view flag, int64_t absent_us) {
  if (!args.Has(flag)) return absent_us;
  const std::string_view text = args.Get(flag);
  if (text == "0") return 0;
  if (text.ends_with("ms")) {
    const auto ms = ParseInt(text.substr(0, text.size() - 2));
    if (ms && *ms >= 0 && *ms < 1'000'000'000) return *ms * 1000;
  }
  OC_TRY(seconds, OfFlag(flag, ParseDurationSeconds(text)));
  return seconds * kSecond;
}

Result<void> ReadNodes(const Args& args, ElasticOptions* options) {
  const std::string_view text = args.Has("--nnodes") ? args.Get("--nnodes") : "1";
  const std::vector<std::string> parts = Split(text, ':');
  const auto bad = [&](std::string_view what) {
    return Fail(ErrorCode::kUsage, StrCat("--nnodes: ", Quoted(text), " ", what),
                "--nnodes MIN:MAX, as in 1:4");
  };
  if (parts.size() > 2) return bad("is no range of nodes");
  OC_TRY(least, WholeNumber("--nnodes", parts.front(), 1, 0));
  OC_TRY(most, WholeNumber("--nnodes", parts.back(), 1, 0));
  if (least == 0 || most == 0) return bad("is no range of nodes");
  if (least > most) return bad("begins behind its end");
  options->min_nodes = least;
  options->max_nodes = most;
  return {};
}

Result<int> RanksFor(std::string_view flag, std::string_view text, const Variables& variables) {
  const int cpus = std::max(1, DetectMachine().cpus);
  if (text == "cpu") return cpus;
  const int gpus = GpusHere(variables, text == "xpu");
  if (gpus > 0) return gpus;
  if (text == "auto") return cpus;
  return Fail(ErrorCode::kUsage, StrCat(flag, ": there is no ", text == "xpu" ? "XPU" : "GPU", " here"));
}

Result<void> ReadRanks(const Args& args, const LaunchOptions& common, const LaunchWorld& world,
                       ElasticOptions* options) {
  const std::string_view text = args.Get("--nproc-per-node");
  if (text == "cpu" || text == "gpu" || text == "xpu" || text == "auto") {
    OC_TRY(ranks, RanksFor(args.Typed("--nproc-per-node"), text, world.variables));
    options->ranks = ranks;
  } else if (text.empty() && common.plan.per_node == 0) {
    options->ranks = std::max(1, GpusHere(world.variables));
  } else {
    OC_TRY(ranks, NumberOf(args, "--nproc-per-node", 1, common.plan.per_node));
    options->ranks = ranks;
  }
  if (common.plan.ranks != 0) {
    return Fail(ErrorCode::kUsage, "-n: an elastic group has as many ranks as its nodes bring along",
                "--nproc-per-node P says how many each node has");
  }
  return {};
}

// Keys that say how torchrun's own store is kept are accepted: there is none here.
Result<void> ReadConf(const Args& args, ElasticOptions* options) {
  const std::string_view flag = args.Typed("--rdzv-conf");
  if (args.Get("--rdzv-conf").empty()) return {};
  for (const std::string& pair : Split(args.Get("--rdzv-conf"), ',')) {
    const size_t equals = pair.find('=');
    const std::string_view name = Trim(std::string_view(pair).substr(0, equals));
    if (equals == pair.npos || name.empty())
      return Fail(ErrorCode::kUsage, StrCat(flag, ": ", Quoted(pair), " has no value"));
    if (name != "last_call_timeout" && name != "join_timeout" && name != "timeout") continue;
    OC_TRY(seconds,
           WholeNumber(StrCat(flag, " ", name), Trim(std::string_view(pair).substr(equals + 1)), 0, 0));
    (name == "last_call_timeout" ? options->last_call_us : options->join_timeout_us) = seconds * kSecond;
  }
  return {};
}

Result<elastic::Grow> ReadGrow(const Args& args) {
  const std::string_view how = args.Has("--grow") ? args.Get("--grow") : "at-checkpoint";
  if (how == "now") return elastic::Grow::kNow;
  if (how == "at-checkpoint") return elastic::Grow::kAtCheckpoint;
  if (how == "never") return elastic::Grow::kNo;
  return Fail(ErrorCode::kUsage, StrCat("--grow: ", Quoted(how), " is not now, at-checkpoint or never"));
}

Result<void> ReadPlace(const Args& args, const LaunchOptions& common, const Variables& variables,
                       ElasticOptions* options) {
  if (args.Has("--rdzv")) {
    const bool torch = args.Has("--rdzv-backend") || args.Has("--rdzv-endpoint") || args.Has("--master-addr");
    if (torch || args.Has("--standalone")) {
      return Fail(ErrorCode::kUsage, "--rdzv: it is given twice, in Overcap's words and in torchrun's");
    }
    const std::string_view text = args.Get("--rdzv"), id = args.Get("--rdzv-id");
    OC_TRY(place,
           elastic::ParseRendezvous(text == "auto" && !id.empty() ? StrCat("auto:", id) : std::string(text)));
    options->place = std::move(place);
    options->master_port = common.master_port;
  } else if (args.Has("--standalone")) {
    options->max_nodes = options->min_nodes = 1;  // as torchrun has it
  } else {
    OC_TRY_VOID(ReadTorchPlace(args, common, options));
  }
  options->open = args.Has("--rdzv-open");
  if (options->max_nodes > 1) options->place = elastic::PlaceUnderSlurm(std::move(options->place), variables);
  if (options->place.id.empty() && options->min_nodes > 1) {
    return Fail(
        ErrorCode::kUsage,
        StrCat("--nnodes: nothing says where to find ", CountOf(options->min_nodes - 1, "other node")),
        "--rdzv-endpoint HOST:PORT, --rdzv etcd://HOST:2379/ID, or auto:ID on one machine");
  }
  if (options->open && options->place.kind != elastic::RendezvousPlace::Kind::kTcp) {
    return Fail(ErrorCode::kUsage,
                StrCat("--rdzv-open: '", options->place.Text(), "' has no key to leave out"),
                "it is for tcp:// and for auto in a Slurm step of several nodes");
  }
  if (options->open && !variables.Get("OVERCAP_RDZV_KEY").empty()) {
    return Fail(ErrorCode::kUsage, "--rdzv-open: OVERCAP_RDZV_KEY is set", "leave out one of them");
  }
  return {};
}

void Prepend(const LaunchWorld& world, bool module, std::vector<std::string>* command) {
  std::string python(world.variables.Get("PYTHON_EXEC"));
  if (python.empty()) python = "python3";
  std::vector<std::string> words{python, "-u"};
  if (module) words.emplace_back("-m");
  command->insert(command->begin(), words.begin(), words.end());
}

bool CanBeRead(const LaunchWorld& world, const std::string& script) {
  const std::string path = script.starts_with('/') ? script : StrCat(world.folder, "/", script);
  return access(path.c_str(), R_OK) == 0;
}

}  // namespace

Result<void> GivePython(const Args& args, const LaunchWorld& world, bool group,
                        std::vector<std::string>* command) {
  const bool module = args.Has("--module");
  if (module && args.Has("--no-python")) {
    return Fail(ErrorCode::kUsage, "--no-python does not go with -m", "leave out one of them");
  }
  if (module || args.Has("--run-path")) {
    Prepend(world, module, command);
    return {};
  }
  if (args.Has("--no-python")) return {};
  const std::string script = command->front();
  const bool python = script.ends_with(".py");
  const auto runs = [&] {
    return ResolveProgram(script, world.variables.Get("PATH"), world.folder).has_value();
  };
  const bool by_python = (group && python) || ((group || python) && !runs() && CanBeRead(world, script));
  if (by_python) Prepend(world, false, command);
  return {};
}

bool AsksForElastic(const Args& args) {
  return AsksAsTorchrun(args) || std::any_of(std::begin(kElasticFlags), std::end(kElasticFlags),
                                             [&](std::string_view flag) { return args.Has(flag); });
}

Result<ElasticOptions> ReadElastic(const Args& args, const LaunchOptions& common, const LaunchWorld& world) {
  ElasticOptions options;
  OC_TRY_VOID(ReadNodes(args, &options));
  OC_TRY_VOID(ReadRanks(args, common, world, &options));
  OC_TRY(restarts, NumberOf(args, "--max-restarts", 0, 0));
  OC_TRY(node_rank, NumberOf(args, "--node-rank", 0, -1));
  OC_TRY(grow, ReadGrow(args));
  OC_TRY_VOID(ReadConf(args, &options));
  OC_TRY(join_timeout, Time(args, "--join-timeout", options.join_timeout_us));
  OC_TRY(last_call, Time(args, "--last-call", options.last_call_us));
  OC_TRY(hang, Time(args, "--hang-timeout", 0));
  OC_TRY(ttl, Time(args, "--ttl", options.ttl_us));
  if (ttl < kSecond || ttl > 3600 * kSecond || ttl % kSecond != 0) {
    return Fail(ErrorCode::kUsage, "--ttl: whole seconds, from 1s to 1h");
  }
  if (!common.hostfile.empty() || common.retries != 0 || common.plan.spare_nodes != 0 ||
      common.launcher != "auto" || !common.launcher_args.empty()) {
    return Fail(ErrorCode::kUsage,
                "--hostfile, --launcher, --launcher-args, --retries and --spare-nodes do not go with an "
                "elastic group",
                "each of its nodes starts its own 'overcap launch'");
  }
  if (common.idle_us != 0)
    return Fail(ErrorCode::kUsage, "--timeout: in an elastic group that is --hang-timeout");
  OC_TRY_VOID(ReadPlace(args, common, world.variables, &options));
  options.max_restarts = restarts;
  options.node_rank = node_rank;
  options.grow = grow;
  options.join_timeout_us = join_timeout;
  options.last_call_us = last_call;
  options.hang_us = hang;
  options.ttl_us = ttl;
  OC_TRY_VOID(ReadTorchWords(args, common, world.variables, &options));
  options.local_addr = args.Get("--local-addr");
  options.tee = common.tee;
  options.pipes = common.pipes;
  options.logs = common.logs;
  options.logs_below = common.logs_below;
  options.program = common.command.front();
  options.command = common.command;
  OC_TRY_VOID(GivePython(args, world, true, &options.command));
  return options;
}

}  // namespace overcap::cli
