// SPDX-License-Identifier: Apache-2.0
#include "control/logs.h"

#include "base/json_writer.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/commands/follow_job.h"
#include "cli/commands/job_words.h"
#include "cli/commands/rank_words.h"
#include "control/array_tasks.h"

namespace overcap::cli {
namespace {

constexpr int kMost = 1'000'000'000;

constexpr Flag kLogsFlags[] = {
    {"--follow", "-f", "", "go on until the job has ended"},
    {"--rank", "-r", "RANKS", "0, 0,2 or all; rank 0 by default"},
    {"--attempt", "", "N", "of that attempt (of a task: that try); the last by default"},
    {"--tail", "", "N", "only the last N lines"},
    kFromFlag,
    {"--task", "", "T", "of that task of an array; the first that failed by default"},
};

Result<LogRequest> ReadRequest(const Args& args) {
  LogRequest request;
  OC_TRY(ranks, ReadRanks(args));
  OC_TRY(attempt, args.GetInt("--attempt", 0, 1, kMost));
  OC_TRY(task, args.GetInt("--task", -1, 0, kMost));
  OC_TRY(tail, args.GetInt("--tail", -1, 0, kMost));
  request.ranks = std::move(ranks);
  request.attempt = static_cast<int>(attempt);
  request.task = static_cast<int>(task);
  request.tail = tail;
  return request;
}

// An array has many logs: one is shown, and the user is told whose it is.
void ChooseTask(World& world, JobRecord* record, LogRequest* request) {
  if (request->task >= 0 || record->spec.array.empty() || record->attempt == 0) return;
  AddFailedTasks(record);
  request->task = DefaultTask(*record);
  const bool failed = request->task == record->first_failed_task;
  world.out().Note(StrCat("task ", request->task, failed ? ", which failed first" : ", the first",
                          "; --task T shows another one"));
}

// With --json: where the logs are, not what they say.
Result<int> PrintPlaces(World& world, const JobRecord& record, const LogRequest& request) {
  OC_TRY(logs, SelectLogs(record, request));
  JsonWriter json;
  json.BeginArray();
  for (const LogFile& log : logs) {
    json.BeginObject().Field("attempt", log.attempt).Field("rank", log.rank);
    if (log.task >= 0) json.Field("task", log.task);
    json.Field("path", log.path).EndObject();
  }
  world.out().Json(json.EndArray().Text());
  return 0;
}

Result<int> RunLogs(World& world, const Args& args) {
  OC_TRY(request, ReadRequest(args));
  std::unique_ptr<Cluster> stored;
  OC_TRY(jobs, JobsFrom(world, args, &stored));
  OC_TRY(records, jobs.cluster->Query(jobs.ids));
  JobRecord& record = records.front();
  OC_TRY(right, RightTo(world, *jobs.cluster, record, JobVerb::kLogs));
  if (right == FilesRight::kAsOwner) {
    OC_TRY(end, RunOwnersCommand(world, OwnersCommand(world, *jobs.cluster, record, "logs", args, jobs.ids)));
    return end.exit_status;
  }
  ChooseTask(world, &record, &request);
  if (world.out().json()) return PrintPlaces(world, record, request);
  if (args.Has("--follow")) return FollowJob(world, *jobs.cluster, record.spec.id, request);
  OC_TRY_VOID(PrintLogs(record, request, [&](std::string_view bytes) { world.out().Write(bytes); }));
  return 0;
}

}  // namespace

constinit const Command kLogs = {
    .name = "logs",
    .summary = "what a job has written",
    .usage = "[-f] [--rank R] [--attempt N] [--tail N] [--task T] [--from LOCATION] JOB",
    .flags = kLogsFlags,
    .min_words = 1,
    .max_words = 1,
    .run = RunLogs,
    .job_words = true,
};

}  // namespace overcap::cli
