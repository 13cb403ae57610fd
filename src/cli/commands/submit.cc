// SPDX-License-Identifier: Apache-2.0
#include "control/submit.h"

#include "base/text.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/commands/follow_job.h"
#include "cli/commands/job_words.h"
#include "control/submitter_environment.h"

namespace overcap::cli {
namespace {

constexpr int kMost = 1'000'000;

constexpr Flag kFlags[] = {
    {"--gpus", "-n", "GPUS", "GPUs in all; 0 for none"},
    {"--nodes", "", "N", "nodes to spread over"},
    {"--ranks-per-node", "", "R", "processes per node; one per GPU by default"},
    {"--one-rank-per-node", "", "", "one process per node that sees all its GPUs"},
    {"--gpu-type", "", "TYPES", "which GPUs: 'a40|rtx_6000', '!titan_x'"},
    {"--cpus", "", "N", "processors per node"},
    {"--mem", "", "SIZE", "memory per node: 512M, 16G"},
    {"--time", "-t", "LIMIT", "stop it after that: 30m, 4h, 2d"},
    {"--name", "", "NAME", "a name for tables"},
    {"--env", "", "NAME=VALUE", "a variable of the ranks", true},
    {"--workdir", "", "FOLDER", "where the ranks start, in the current folder"},
    {"--after", "", "JOB", "start when that job has succeeded", true},
    {"--after-any", "", "JOB", "start when that job has ended, however", true},
    {"--hold", "", "", "wait for `overcap release`"},
    {"--array", "", "TASKS", "many tasks: 0-9999%100"},
    {"--requeue", "", "", "start again after a reboot or a lost agent"},
    {"--no-requeue", "", "", "do not"},
    {"--max-restarts", "", "N", "start again after a failure, so often"},
    {"--priority", "", "N", "higher ones go first"},
    {"--wait", "", "", "return when it has ended, with its exit status"},
    {"--follow", "-f", "", "show the log of rank 0 until it ends, then like --wait"},
    {"--dry-run", "", "", "print what would be sent, send nothing"},
};

Result<std::optional<int>> IntFlag(const Args& args, std::string_view flag, int min) {
  if (!args.Has(flag)) return std::optional<int>();
  OC_TRY(value, args.GetInt(flag, 0, min, kMost));
  return std::optional<int>(static_cast<int>(value));
}

Result<void> ReadResources(const Args& args, JobRequest* request) {
  OC_TRY(gpus, IntFlag(args, "--gpus", 0));
  OC_TRY(nodes, IntFlag(args, "--nodes", 1));
  OC_TRY(ranks, IntFlag(args, "--ranks-per-node", 1));
  OC_TRY(cpus, IntFlag(args, "--cpus", 1));
  request->gpus = gpus;
  request->nodes = nodes.value_or(1);
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

Result<void> ReadPolicy(const Args& args, JobRequest* request) {
  if (args.Has("--array")) {
    OC_TRY(array, OfFlag(args.Typed("--array"), ParseArraySpec(args.Get("--array"))));
    request->array = std::move(array);
  }
  OC_TRY(restarts, IntFlag(args, "--max-restarts", 0));
  OC_TRY(priority, args.GetInt("--priority", 0, -kMost, kMost));
  request->max_restarts = restarts;
  request->priority = static_cast<int>(priority);
  request->hold = args.Has("--hold");
  const std::string_view requeue = args.LastOf({"--requeue", "--no-requeue"});
  if (!requeue.empty()) request->requeue = requeue == "--requeue";
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
  request.user = world.user();
  request.name = args.Get("--name");
  OC_TRY_VOID(ReadResources(args, &request));
  OC_TRY_VOID(ReadPolicy(args, &request));
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
    out.Json(SpecToJson(plan.spec));
  } else {
    out.Write(plan.text);
  }
  return 0;
}

void Announce(World& world, const JobRecord& record, bool watches) {
  Output& out = world.out();
  if (out.json()) {
    if (!watches) PrintRecordJson(world, record);
    return;
  }
  out.Line(record.spec.id);
  if (!watches && out.terminal().err_is_terminal) {
    const std::string end = record.spec.id.substr(record.spec.id.size() - 5);
    out.Note(StrCat("overcap q ", end, " shows it, overcap logs -f ", end, " follows it"));
  }
}

Result<int> Run(World& world, const Args& args) {
  OC_TRY(cluster, world.GetCluster());
  OC_TRY(request, ReadRequest(world, *cluster, args));
  Output& out = world.out();
  SubmitTools tools{*cluster, world.config(), world.clock(), world.random(), world.root() + "/store"};
  tools.progress = [&](int64_t files, int64_t bytes) {
    out.Progress(StrCat("capturing code: ", CountOf(files, "file"), ", ", FormatBytes(bytes)));
  };
  OC_TRY(prepared, PrepareJob(request, tools));
  SayNotes(out, prepared, world.config());
  if (args.Has("--dry-run")) return DryRun(out, prepared.plan);
  OC_TRY(record, cluster->Submit(prepared.plan));
  const bool follow = args.Has("--follow"), wait = args.Has("--wait");
  Announce(world, record, follow || wait);
  if (follow) return FollowJob(world, *cluster, record.spec.id, {});
  if (wait) return WaitForJob(world, *cluster, record.spec.id);
  return 0;
}

}  // namespace

constinit const Command kSubmit = {
    .name = "submit",
    .summary = "run a command on GPUs, with the code of this folder as it is now",
    .usage = "[-n GPUS] [--time LIMIT] [--follow|--wait] [--] CMD...",
    .flags = kFlags,
    .min_words = 1,
    .takes_command = true,
    .run = Run,
};

}  // namespace overcap::cli
