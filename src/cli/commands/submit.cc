// SPDX-License-Identifier: Apache-2.0
#include "control/submit.h"

#include "base/json_writer.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/commands/follow_job.h"
#include "cli/commands/job_words.h"
#include "cli/commands/store_words.h"
#include "cli/commands/sweep_table.h"
#include "control/batch_request.h"
#include "control/stored/stored_job.h"
#include "control/stores/job_stores.h"
#include "control/submitter_environment.h"
#include "control/sweep.h"
#include "model/node_range.h"

namespace overcap::cli {
namespace {

constexpr int kMost = 1'000'000;

constexpr Flag kSubmitFlags[] = {
    {"--gpus", "-n", "GPUS", "GPUs in all; 0 for none"},
    {"--nodes", "", "N|MIN:MAX", "nodes to spread over; a range: an elastic job"},
    {"--gpus-per-node", "", "GPUS", "GPUs of each node"},
    {"--ranks-per-node", "", "R", "processes per node; one per GPU by default"},
    {"--one-rank-per-node", "", "", "one process per node that sees all its GPUs"},
    {"--gpu-type", "", "TYPES", "which GPUs: 'a40|rtx_6000', '!titan_x'"},
    {"--cpus", "", "N", "processors per node"},
    {"--mem", "", "SIZE", "memory per node: 512M, 16G"},
    {"--time", "-t", "LIMIT", "stop it after that: 30m, 4h, 2d"},
    {"--name", "", "NAME", "a name for tables"},
    {"--env", "", "NAME=VALUE", "a variable of the ranks", true},
    {"--workdir", "", "FOLDER", "where the ranks start, in the current folder"},
    {"--mount", "", "NAME=STORE", "a store in the job's folder: data=s3://bucket/x,mode=ro", true},
    {"--after", "", "JOB", "start when that job has succeeded", true},
    {"--after-any", "", "JOB", "start when that job has ended, however", true},
    {"--hold", "", "", "wait for `overcap release`"},
    {"--array", "", "TASKS", "many tasks: 0-9999%100"},
    {"--sweep", "", "NAME=VALUES", "a task for each value: lr=1e-4,1e-3; all combinations of several", true},
    {"--sweep-limit", "", "N", "so many of them at the same time"},
    {"--requeue", "", "", "start again after preemption, a reboot or a lost agent"},
    {"--no-requeue", "", "", "do not"},
    {"--requeue-on-timeout", "", "", "start again when the time limit comes"},
    {"--warn", "", "LEAD", "send USR1 so long before the time limit: 90s, 5m"},
    {"--signal", "", "LEAD", "the same as --warn"},
    {"--partition", "-p", "PARTITIONS", "where in the cluster: 'short,overcap'"},
    {"--account", "", "ACCOUNT", "who pays, in the cluster's own terms"},
    {"--qos", "", "QOS", "the quality of service, in the cluster's own terms"},
    {"--node", "-w", "NODE", "on this node"},
    {"--slurm-args", "", "WORDS", "more options for sbatch: '--exclusive --mail-type=END'", true},
    {"--strict", "", "", "advice is an error"},
    {"--max-restarts", "", "N", "start again after a failure, so often"},
    {"--priority", "", "N", "higher ones go first"},
    {"--wait", "", "", "return when it has ended, with its exit status"},
    {"--follow", "-f", "", "show the log of rank 0 until it ends, then like --wait"},
    {"--store", "", "LOCATION",
     "code and logs go through this store: s3://bucket/prefix; none for the folder"},
    {"--dry-run", "", "", "print what would be sent, send nothing"},
};

Result<std::optional<int>> IntFlag(const Args& args, std::string_view flag, int min) {
  if (!args.Has(flag)) return std::optional<int>();
  OC_TRY(value, args.GetInt(flag, 0, min, kMost));
  return std::optional<int>(static_cast<int>(value));
}

Result<void> ReadNodes(const Args& args, JobRequest* request) {
  if (!args.Has("--nodes")) return {};
  OC_TRY(range, OfFlag(args.Typed("--nodes"), ParseNodeRange(args.Get("--nodes"))));
  request->nodes = range.least;
  request->max_nodes = range.most;
  return {};
}

Result<void> ReadResources(const Args& args, JobRequest* request) {
  OC_TRY(gpus, IntFlag(args, "--gpus", 0));
  OC_TRY_VOID(ReadNodes(args, request));
  OC_TRY(ranks, IntFlag(args, "--ranks-per-node", 1));
  OC_TRY(cpus, IntFlag(args, "--cpus", 1));
  request->gpus = gpus;
  if (args.Has("--gpus-per-node")) {
    if (gpus)
      return Fail(ErrorCode::kUsage, "--gpus and --gpus-per-node say the same twice", "give one of them");
    OC_TRY(each, IntFlag(args, "--gpus-per-node", 0));
    request->gpus_per_node = each;
  }
  request->ranks_per_node = ranks;
  request->cpus = cpus;
  request->one_rank_per_node = args.Has("--one-rank-per-node");
  request->gpu_type = args.Get("--gpu-type");
  if (args.Has("--mem")) {
    OC_TRY(bytes, OfFlag(args.Typed("--mem"), ParseBytes(args.Get("--mem"))));
    request->mem_bytes = bytes;
  }
  if (args.Has("--time")) {
    OC_TRY(seconds, OfFlag(args.Typed("--time"), ParseDurationSeconds(args.Get("--time"))));
    request->time_seconds = seconds;
  }
  return {};
}

Result<void> ReadPlacement(const Args& args, Placement* place) {
  if (args.Has("--partition")) place->partitions = Split(args.Get("--partition"), ',');
  place->account = args.Get("--account");
  place->qos = args.Get("--qos");
  place->node = args.Get("--node");
  for (const std::string& line : args.All("--slurm-args")) {
    const auto words = SplitWords(line);
    if (!words)
      return Fail(ErrorCode::kUsage, StrCat("--slurm-args: a quote is not closed in ", Quoted(line)));
    place->args.insert(place->args.end(), words->begin(), words->end());
  }
  for (const std::string_view flag : {"--partition", "--account", "--qos", "--node"}) {
    if (args.Has(flag) && args.Get(flag).empty())
      return Fail(ErrorCode::kUsage, StrCat(args.Typed(flag), " needs a name"));
  }
  return {};
}

Result<void> ReadTasks(const Args& args, JobRequest* request) {
  if (args.Has("--array")) {
    if (args.Has("--sweep"))
      return Fail(ErrorCode::kUsage, "--sweep makes its own array, so there is no place for --array",
                  "--sweep-limit N runs so many tasks at the same time");
    OC_TRY(array, OfFlag(args.Typed("--array"), ParseArraySpec(args.Get("--array"))));
    request->array = std::move(array);
  }
  OC_TRY(limit, args.GetInt("--sweep-limit", 0, 1, kMost));
  if (limit > 0 && !args.Has("--sweep")) return Fail(ErrorCode::kUsage, "--sweep-limit without --sweep");
  if (!args.Has("--sweep")) return {};
  OC_TRY(sweep, OfFlag("--sweep", ParseSweep(args.All("--sweep"))));
  request->array = SweepArray(sweep, static_cast<int>(limit));
  request->sweep = std::move(sweep);
  return {};
}

Result<void> ReadPolicy(const Args& args, JobRequest* request) {
  OC_TRY_VOID(ReadTasks(args, request));
  OC_TRY(restarts, IntFlag(args, "--max-restarts", 0));
  OC_TRY(priority, args.GetInt("--priority", 0, -kMost, kMost));
  request->max_restarts = restarts;
  request->priority = static_cast<int>(priority);
  request->hold = args.Has("--hold");
  const std::string_view requeue = args.LastOf({"--requeue", "--no-requeue"});
  if (!requeue.empty()) request->requeue = requeue == "--requeue";
  if (args.Has("--requeue-on-timeout")) request->requeue_on_timeout = true;
  if (const std::string_view warn = args.LastOf({"--warn", "--signal"}); !warn.empty()) {
    OC_TRY(seconds, OfFlag(warn, ParseDurationSeconds(args.Get(warn))));
    request->warn_seconds = seconds;
  }
  return {};
}

// A script's own directives fill in what no flag says.
Result<void> ReadScript(Cluster& cluster, JobRequest* request) {
  OC_TRY(found, FindBatchScript(*request));
  if (!found) return {};
  std::vector<Dependency> after;
  OC_TRY_VOID(ApplyBatchScript(*found, cluster.GetCapabilities(), request, &after));
  for (const Dependency& dependency : after) {
    OC_TRY(ids, cluster.Resolve({dependency.job_id}));
    request->after.push_back({ids.front(), dependency.any_end});
  }
  return {};
}

Result<void> ReadAfter(Cluster& cluster, const Args& args, JobRequest* request) {
  for (const std::string_view flag : {"--after", "--after-any"}) {
    const std::vector<std::string> refs = args.All(flag);
    if (refs.empty()) continue;
    OC_TRY(ids, cluster.Resolve(refs));
    for (std::string& id : ids) request->after.push_back({std::move(id), flag == "--after-any"});
  }
  return CheckAfter(cluster, request->after);
}

Result<JobRequest> ReadRequest(World& world, Cluster& cluster, const Args& args) {
  OC_TRY(folder, world.Folder());
  JobRequest request;
  request.command = args.words();
  request.folder = std::move(folder);
  request.workdir = args.Get("--workdir");
  request.environment = OwnEnvironment();
  request.env = args.All("--env");
  request.mounts = args.All("--mount");
  request.user = world.user();
  request.name = args.Get("--name");
  OC_TRY_VOID(ReadResources(args, &request));
  OC_TRY_VOID(ReadPolicy(args, &request));
  OC_TRY_VOID(ReadPlacement(args, &request.placement));
  OC_TRY_VOID(ReadScript(cluster, &request));
  OC_TRY_VOID(ReadAfter(cluster, args, &request));
  return request;
}

void SayNotes(Output& out, const PreparedJob& prepared, const Config& config) {
  out.ClearProgress();
  for (const std::string& note : prepared.notes) out.Note(note);
  if (!prepared.capture) return;
  for (const std::string& note : prepared.capture->notes) out.Note(note);
  const std::string warning = CaptureWarning(*prepared.capture, config);
  if (!warning.empty()) out.Warn(warning);
}

Result<int> DryRun(Output& out, const SubmitPlan& plan) {
  if (out.json()) {
    JsonWriter text;
    text.String(plan.text);
    std::string json = SpecToJson(plan.spec);
    json.insert(json.size() - 1, StrCat(",\"plan\":", text.Text()));
    out.Json(WithCombinations(std::move(json), plan.spec));
    return 0;
  }
  out.Write(plan.text);
  if (!plan.spec.sweep.empty()) out.Write(CombinationsText(plan.spec, 0));
  return 0;
}

void Announce(World& world, const JobRecord& record, const JobSpec& spec, bool watches) {
  Output& out = world.out();
  if (out.json()) {
    if (!watches) out.Json(WithCombinations(RecordToJson(record, world.clock().WallUs()), spec));
    return;
  }
  out.Line(record.spec.id);
  if (out.quiet()) return;
  if (!spec.sweep.empty()) out.WriteAside(CombinationsText(spec, out.terminal().width));
  if (!watches && out.terminal().err_is_terminal) {
    const std::string end = record.spec.id.substr(record.spec.id.size() - 5);
    out.Note(StrCat("overcap q ", end, " shows it, overcap logs -f ", end, " follows it"));
  }
}

// Costs nothing when nobody would see it. With --strict advice is an error.
Result<std::vector<std::string>> Advice(World& world, Cluster& cluster, const JobSpec& spec, bool strict) {
  Output& out = world.out();
  if (!strict && (out.quiet() || out.json())) return std::vector<std::string>();
  std::vector<std::string> advice = AdviceFor(cluster, spec);
  if (strict && !advice.empty())
    return Fail(ErrorCode::kUsage, advice.front(),
                "nothing was submitted; without --strict this is only advice");
  return advice;
}

void SayAdvice(Output& out, const std::vector<std::string>& advice) {
  for (const std::string& line : advice) out.Note(StrCat("advice: ", line));
}

// The store of --store, else of the cluster; none when neither names one.
Result<JobStore> JobStoreFor(World& world, const Args& args) {
  const auto cluster = world.config().clusters.find(world.cluster_name());
  std::string text = cluster == world.config().clusters.end() ? "" : cluster->second.store;
  if (args.Has("--store")) text = args.Get("--store") == "none" ? "" : args.Get("--store");
  if (text.empty()) return JobStore{};
  return JobStoreOf(StoreBookOf(world), text);
}

Result<PreparedJob> Prepare(World& world, Cluster& cluster, const Args& args) {
  OC_TRY(request, ReadRequest(world, cluster, args));
  OC_TRY(root, world.ClusterFolder());
  Output& out = world.out();
  SubmitTools tools{cluster, world.config(), world.clock(), world.random(), root + "/store"};
  tools.submit_follows = !args.Has("--dry-run");
  OC_TRY(via, JobStoreFor(world, args));
  tools.via = std::move(via);
  tools.progress = [&](int64_t files, int64_t bytes) {
    out.Progress(StrCat("capturing code: ", CountOf(files, "file"), ", ", FormatBytes(bytes)));
  };
  return PrepareJob(request, tools);
}

Result<int> RunSubmit(World& world, const Args& args) {
  OC_TRY(cluster, world.GetCluster());
  OC_TRY(prepared, Prepare(world, *cluster, args));
  Output& out = world.out();
  SayNotes(out, prepared, world.config());
  const JobSpec& spec = prepared.plan.spec;
  // Before it is sent: the cluster is preparing for that already.
  OC_TRY(advice, Advice(world, *cluster, spec, args.Has("--strict")));
  if (args.Has("--dry-run")) {
    SayAdvice(out, advice);
    return DryRun(out, prepared.plan);
  }
  auto submitted = cluster->Submit(prepared.plan);
  if (!submitted) {
    DropStoredSpec(spec, submitted.error());
    return Fail(std::move(submitted).error());
  }
  const JobRecord record = *std::move(submitted);
  const bool follow = args.Has("--follow"), wait = args.Has("--wait");
  out.MustTell(QueuedText({record.spec.id}), StrCat("overcap query ", record.spec.id));
  Announce(world, record, spec, follow || wait);
  SayAdvice(out, advice);
  if (follow) return FollowJob(world, *cluster, record.spec.id, {});
  if (wait) return WaitForJob(world, *cluster, record.spec.id);
  return 0;
}

constexpr FlagSynonym kSynonyms[] = {{"--sbatch-args", "--slurm-args"},
                                     {"--cluster-args", "--slurm-args"},
                                     {"--nodelist", "--node"},
                                     {"--job-name", "--name"},
                                     {"--chdir", "--workdir"},
                                     {"--constraint", "--gpu-type"},
                                     {"--gres", "--gpus"},
                                     {"--dependency", "--after"},
                                     {"--cpus-per-task", "--cpus"},
                                     {"-A", "--account"},
                                     {"-N", "--nodes"},
                                     {"-G", "--gpus"},
                                     {"-J", "--name"},
                                     {"-D", "--workdir"},
                                     {"-d", "--after"},
                                     {"-a", "--array"}};

}  // namespace

constinit const Command kSubmit = {
    .name = "submit",
    .summary = "run a command on GPUs, with the code of this folder as it is now",
    .usage = "[-n GPUS] [--time LIMIT] [--follow|--wait] [--] CMD...",
    .flags = kSubmitFlags,
    .min_words = 1,
    .takes_command = true,
    .run = RunSubmit,
    .synonyms = kSynonyms,
};

}  // namespace overcap::cli
