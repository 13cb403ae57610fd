// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/launch_elastic.h"

#include <algorithm>
#include <string_view>
#include <unistd.h>

#include "base/text.h"
#include "base/units.h"
#include "control/elastic/elastic_launch.h"
#include "sys/devices.h"
#include "sys/process.h"

namespace overcap::cli {
namespace {

constexpr int64_t kSecond = 1'000'000;
constexpr int kMost = 1'000'000;
constexpr std::string_view kElasticFlags[] = {"--rdzv",
                                              "--rdzv-open",
                                              "--rdzv-backend",
                                              "--rdzv_backend",
                                              "--rdzv-endpoint",
                                              "--rdzv_endpoint",
                                              "--rdzv-id",
                                              "--rdzv_id",
                                              "--rdzv-conf",
                                              "--rdzv_conf",
                                              "--standalone",
                                              "--max-restarts",
                                              "--max_restarts",
                                              "--grow",
                                              "--join-timeout",
                                              "--last-call",
                                              "--hang-timeout",
                                              "--ttl",
                                              "--node-rank",
                                              "--node_rank",
                                              "--nproc-per-node",
                                              "--nproc_per_node",
                                              "--master-addr",
                                              "--master_addr",
                                              "--master_port",
                                              "--local-addr",
                                              "--local_addr",
                                              "--module",
                                              "--no-python",
                                              "--no_python",
                                              "--monitor-interval",
                                              "--monitor_interval"};

// What was given under either of two names; of both the first counts.
std::string_view Either(const Args& args, std::string_view a, std::string_view b) {
  return args.Has(a) ? args.Get(a) : args.Get(b);
}

std::string_view Typed(const Args& args, std::string_view a, std::string_view b) {
  return args.Has(a) ? a : b;
}

Result<int> Number(std::string_view flag, std::string_view text, int least, int absent) {
  if (text.empty()) return absent;
  const auto value = ParseInt(text);
  if (!value || *value < least || *value > kMost) {
    return Fail(ErrorCode::kUsage, StrCat(flag, ": ", Quoted(text), " is no number from ", least, " on"));
  }
  return static_cast<int>(*value);
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
  OC_TRY(least, Number("--nnodes", parts.front(), 1, 0));
  OC_TRY(most, Number("--nnodes", parts.back(), 1, 0));
  if (least == 0 || most == 0) return bad("is no range of nodes");
  if (least > most) return bad("begins behind its end");
  options->min_nodes = least;
  options->max_nodes = most;
  return {};
}

Result<void> ReadRanks(const Args& args, const LaunchOptions& common, const LaunchWorld& world,
                       ElasticOptions* options) {
  const std::string_view flag = Typed(args, "--nproc-per-node", "--nproc_per_node");
  const std::string_view text = Either(args, "--nproc-per-node", "--nproc_per_node");
  if (text == "cpu") {
    options->ranks = std::max(1, DetectMachine().cpus);
  } else if (text == "gpu" || text == "auto" || (text.empty() && common.plan.per_node == 0)) {
    const int gpus = GpusHere(world.variables);
    if (gpus == 0 && text == "gpu") return Fail(ErrorCode::kUsage, StrCat(flag, ": there is no GPU here"));
    options->ranks = std::max(1, gpus);
  } else {
    OC_TRY(ranks, Number(flag, text, 1, common.plan.per_node));
    options->ranks = ranks;
  }
  if (common.plan.ranks != 0) {
    return Fail(ErrorCode::kUsage, "-n: an elastic group has as many ranks as its nodes bring along",
                "--nproc-per-node P says how many each node has");
  }
  return {};
}

Result<void> ReadConf(const Args& args, ElasticOptions* options) {
  const std::string_view flag = Typed(args, "--rdzv-conf", "--rdzv_conf");
  const std::string_view text = Either(args, "--rdzv-conf", "--rdzv_conf");
  if (text.empty()) return {};
  for (const std::string& pair : Split(text, ',')) {
    const size_t equals = pair.find('=');
    const std::string name = pair.substr(0, equals);
    if (equals == pair.npos)
      return Fail(ErrorCode::kUsage, StrCat(flag, ": ", Quoted(pair), " has no value"));
    OC_TRY(seconds, Number(flag, pair.substr(equals + 1), 0, 0));
    if (name == "last_call_timeout") {
      options->last_call_us = seconds * kSecond;
    } else if (name == "join_timeout" || name == "timeout") {
      options->join_timeout_us = seconds * kSecond;
    } else {
      return Fail(ErrorCode::kUsage, StrCat(flag, ": ", Quoted(name), " means nothing here"),
                  "last_call_timeout, join_timeout");
    }
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
  const std::string_view id = Either(args, "--rdzv-id", "--rdzv_id");
  const std::string_view backend = Either(args, "--rdzv-backend", "--rdzv_backend");
  const std::string_view endpoint = Either(args, "--rdzv-endpoint", "--rdzv_endpoint");
  const std::string master(Either(args, "--master-addr", "--master_addr"));
  if (args.Has("--rdzv")) {
    if (!backend.empty() || !endpoint.empty() || args.Has("--standalone") || !master.empty()) {
      return Fail(ErrorCode::kUsage, "--rdzv: it is given twice, in Overcap's words and in torchrun's");
    }
    std::string text(args.Get("--rdzv"));
    if (!id.empty()) text = text == "auto" ? StrCat("auto:", id) : text;
    OC_TRY(place, elastic::ParseRendezvous(text));
    options->place = std::move(place);
  } else if (args.Has("--standalone")) {
    options->max_nodes = options->min_nodes = 1;  // as torchrun has it
  } else if (!master.empty()) {
    OC_TRY(port, Number("--master_port", args.Get("--master_port"), 1,
                        common.master_port != 0 ? common.master_port : 29500));
    OC_TRY(place, elastic::TorchRendezvous("static", StrCat(master, ":", port), id));
    options->place = std::move(place);
  } else {
    OC_TRY(place, elastic::TorchRendezvous(backend, endpoint, id));
    options->place = std::move(place);
  }
  options->open = args.Has("--rdzv-open");
  if (options->max_nodes > 1) options->place = elastic::PlaceUnderSlurm(std::move(options->place), variables);
  if (options->place.id.empty() && options->min_nodes > 1) {
    return Fail(ErrorCode::kUsage,
                StrCat("--nnodes: nobody knows where to find ", options->min_nodes - 1, " other nodes"),
                "--rdzv etcd://HOST:2379/ID, tcp://HOST:PORT/ID, or auto:ID on one machine");
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

// torchrun runs a script with Python, also one that is not executable.
void AddPython(const Args& args, const LaunchWorld& world, std::vector<std::string>* command) {
  if (args.Has("--no-python") || args.Has("--no_python")) return;
  const bool module = args.Has("--module");
  if (!module && !command->front().ends_with(".py")) return;
  Prepend(world, module, command);
}

}  // namespace

void GivePython(const LaunchWorld& world, std::vector<std::string>* command) {
  const std::string& script = command->front();
  if (!script.ends_with(".py") || ResolveProgram(script, world.variables.Get("PATH"), world.folder)) return;
  const std::string path = script.starts_with('/') ? script : StrCat(world.folder, "/", script);
  if (access(path.c_str(), R_OK) == 0) Prepend(world, false, command);
}

bool AsksForElastic(const Args& args) {
  return args.Get("--nnodes").find(':') != std::string_view::npos ||
         std::any_of(std::begin(kElasticFlags), std::end(kElasticFlags),
                     [&](std::string_view flag) { return args.Has(flag); });
}

Result<ElasticOptions> ReadElastic(const Args& args, const LaunchOptions& common, const LaunchWorld& world) {
  ElasticOptions options;
  OC_TRY_VOID(ReadNodes(args, &options));
  OC_TRY_VOID(ReadRanks(args, common, world, &options));
  OC_TRY(restarts, Number(Typed(args, "--max-restarts", "--max_restarts"),
                          Either(args, "--max-restarts", "--max_restarts"), 0, 0));
  OC_TRY(node_rank, Number(Typed(args, "--node-rank", "--node_rank"),
                           Either(args, "--node-rank", "--node_rank"), 0, -1));
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
  if (args.Has("--grace")) options.grace_us = common.grace_us;
  options.local_addr = Either(args, "--local-addr", "--local_addr");
  options.tee = common.tee;
  options.pipes = common.pipes;
  options.logs = common.logs;
  options.command = common.command;
  AddPython(args, world, &options.command);
  return options;
}

}  // namespace overcap::cli
