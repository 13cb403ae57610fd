// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/json_writer.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/commands/job_words.h"
#include "cli/table.h"
#include "control/array_tasks.h"
#include "control/elastic/group_story.h"
#include "control/job_exit_status.h"
#include "control/job_notes.h"
#include "control/job_text.h"
#include "control/log_file.h"
#include "control/logs.h"
#include "control/node_logs.h"

namespace overcap::cli {
namespace {

constexpr int64_t kTailLines = 100;
constexpr int64_t kTailBytes = 1 << 20;
constexpr size_t kMostPaths = 20;
constexpr size_t kMostTasks = 20;
constexpr size_t kMostEvents = 20;

constexpr Flag kQueryFlags[] = {
    {"--tasks", "", "", "what became of each task of an array"},
    kFromFlag,
};

constexpr std::string_view kAliases[] = {"q"};

void Fact(Output& out, std::string_view word, std::string_view value) {
  if (value.empty()) return;
  out.Line(StrCat(out.Paint(Style::kDim, StrCat(word, std::string(11 - word.size(), ' '))), value));
}

std::string AttemptText(const JobRecord& record) {
  if (record.attempt == 0) return IsFinal(record.state) ? "none" : "none yet";
  return StrCat(record.attempt,
                record.restarts > 0 ? StrCat(" (", CountOf(record.restarts, "restart"), ")") : "");
}

std::string FailureText(const JobRecord& record) {
  if (!record.spec.array.empty()) return FirstFailedTaskLine(record);
  if (record.first_failed_rank < 0 || record.state == JobState::kCancelled) return {};
  return StrCat("rank ", record.first_failed_rank, " failed first: ", EndingText(record));
}

void PrintFacts(World& world, const JobRecord& record) {
  Output& out = world.out();
  const JobSpec& spec = record.spec;
  const auto time = [](int64_t us) { return us > 0 ? FormatTimeLocal(us) : std::string(); };
  Fact(out, "job", out.Paint(Style::kBold, spec.id));
  Fact(out, "name", spec.name);
  Fact(out, "state", out.Paint(StateStyle(record.state), StateText(record, world.clock().WallUs())));
  Fact(out, "failure", FailureText(record));
  Fact(out, "attempt", AttemptText(record));
  if (spec.user != world.user()) Fact(out, "user", spec.user);
  Fact(out, "lab", spec.lab);
  Fact(out, "partition", PartitionText(record.state, record.partition, spec.placement.partitions));
  if (record.preemptions > 0)
    Fact(out, "preempted", StrCat(CountOf(record.preemptions, "time"), ", last by ", record.preempted_by));
  Fact(out, "tasks", TasksLine(record));
  Fact(out, "failed", FailedTasksLine(record, kMostTasks));
  Fact(out, "command", CommandText(spec.command));
  Fact(out, "resources", ResourcesLine(record));
  Fact(out, "code", spec.snapshot.empty() ? "" : StrCat(spec.snapshot, " of ", spec.source));
  Fact(out, "workdir", spec.workdir);
  Fact(out, "submitted", time(spec.submitted_us));
  Fact(out, "started", time(record.started_us));
  Fact(out, "ended", time(record.ended_us));
  Fact(out, "again of", spec.resubmit_of);
  Fact(out, "folder", record.dir);
  for (const std::string& note : ReadJobNotes(record)) Fact(out, "note", ToUtf8(note));
}

// The rank whose end the user wants to read: the one that failed first, else rank 0.
void PrintTail(Output& out, const JobRecord& record) {
  LogRequest request;
  const TaskResult* task = FirstFailedTask(record);
  request.ranks = {std::max(0, task == nullptr ? record.first_failed_rank : task->ending.first_failed_rank)};
  const auto logs = SelectLogs(record, request);
  if (!logs) return;
  const LogFile& log = logs->front();
  auto reader = OpenLog(record, log);
  const std::string text = reader ? TailText(*std::move(reader), kTailLines, kTailBytes) : "";
  const std::string whose =
      log.task >= 0 ? StrCat("task ", log.task, ", rank ", log.rank) : StrCat("rank ", log.rank);
  if (text.empty()) {
    out.Line(out.Paint(Style::kDim, StrCat("--- ", whose, " has written nothing ---")));
    return;
  }
  out.Line(out.Paint(Style::kDim, StrCat("--- last lines of ", whose, " ---")));
  out.Write(out.terminal().out_is_terminal ? ToUtf8(text) : text);
  if (text.back() != '\n') out.Line("");
}

void PrintLogPaths(Output& out, const JobRecord& record) {
  const bool array = !record.spec.array.empty();
  if (array ? record.attempt == 0 : record.logs.empty()) return;
  out.Line(out.Paint(Style::kDim, "--- logs ---"));
  if (array) return out.Line(record.dir + "/attempt-1/task-*.rank-*.log");
  const bool all = record.logs.size() <= kMostPaths || !out.terminal().out_is_terminal;
  const size_t shown = all ? record.logs.size() : kMostPaths;
  for (size_t i = 0; i < shown; ++i) out.Line(record.logs[i].path);
  if (!all) out.Line(StrCat("and ", record.logs.size() - shown, " more in ", record.dir));
}

// Of an elastic job: the latest that happened to its group.
void PrintGroup(Output& out, const JobRecord& record) {
  const GroupStory story = ReadJobStory(record);
  if (story.lines.empty()) return;
  out.Line(out.Paint(Style::kDim, "--- the group ---"));
  const size_t first = story.lines.size() > kMostEvents ? story.lines.size() - kMostEvents : 0;
  if (first > 0) out.Line(StrCat("and ", first, " more before, in ", record.dir, "/events.jsonl"));
  for (size_t i = first; i < story.lines.size(); ++i) out.Line(story.lines[i]);
}

void PrintJob(World& world, const JobRecord& record) {
  PrintFacts(world, record);
  PrintGroup(world.out(), record);
  PrintTail(world.out(), record);
  PrintLogPaths(world.out(), record);
}

std::string LogOf(const TaskResult& task, const JobRecord& record) {
  if (task.attempt == 0) return {};
  return TaskLogPath(record, task.task, task.attempt, std::max(0, task.ending.first_failed_rank));
}

void PrintTaskTable(Output& out, const JobRecord& record, const ArrayTasks& tasks) {
  Table table({{"TASK", true}, {"STATE"}, {"TRY", true}, {"EXIT", true}, {"LOG", false, true}});
  for (const TaskResult& task : tasks.tasks) {
    const Ending& ending = task.ending;
    const std::string state(ending.state == JobState::kUnknown ? "not run" : JobStateName(ending.state));
    table.AddRow({StrCat(task.task), state, task.attempt == 0 ? "" : StrCat(task.attempt),
                  ending.exit_status < 0 ? "" : StrCat(ending.exit_status), LogOf(task, record)},
                 {Style::kPlain, StateStyle(ending.state)});
  }
  out.Print(table);
}

Result<int> PrintTasks(World& world, const JobRecord& record) {
  if (record.spec.array.empty()) {
    return Fail(ErrorCode::kUsage, StrCat("--tasks: job '", record.spec.id, "' is no array"),
                StrCat("overcap query ", record.spec.id, " shows all about it"));
  }
  const ArrayTasks tasks = ReadArrayTasks(record);
  if (!world.out().json()) {
    PrintTaskTable(world.out(), record, tasks);
    return 0;
  }
  JsonWriter json;
  json.BeginArray();
  for (const TaskResult& task : tasks.tasks) json.Raw(TaskToJson(task, LogOf(task, record)));
  world.out().Json(json.EndArray().Text());
  return 0;
}

// What the cluster leaves to be read from the job's folder; the paths of a big array only where all are
// wanted.
void AddDetails(World& world, std::vector<JobRecord>* records) {
  for (JobRecord& record : *records) {
    AddNodeLogs(&record);
    if (record.spec.array.empty()) continue;
    AddFailedTasks(&record);
    if (world.out().json()) record.logs = ListTaskLogs(record);
  }
}

// A record, what its agents noted, and what happened to the group of an elastic job.
std::string JsonOf(World& world, const JobRecord& record) {
  std::string json = RecordToJson(record, world.clock().WallUs());
  JsonWriter notes;
  notes.BeginArray();
  for (const std::string& note : ReadJobNotes(record)) notes.String(ToUtf8(note));
  json.insert(json.size() - 1, StrCat(",\"notes\":", notes.EndArray().Text()));
  if (!record.spec.resources.elastic()) return json;
  return json.insert(json.size() - 1, StrCat(",\"group\":[", Join(ReadJobStory(record).json, ","), "]"));
}

void PrintJson(World& world, bool one, const std::vector<JobRecord>& records) {
  std::vector<std::string> each;
  for (const JobRecord& record : records) each.push_back(JsonOf(world, record));
  world.out().Json(one ? each.front() : StrCat("[", Join(each, ",\n"), "]"));
}

Result<int> RunQuery(World& world, const Args& args) {
  const bool tasks = args.Has("--tasks");
  if (tasks && args.words().size() > 1)
    return Fail(ErrorCode::kUsage, "--tasks shows the tasks of one job", "name one JOB");
  std::unique_ptr<Cluster> stored;
  OC_TRY(jobs, JobsFrom(world, args, &stored));
  OC_TRY(records, jobs.cluster->Query(jobs.ids));
  if (tasks) return PrintTasks(world, records.front());
  AddDetails(world, &records);
  if (world.out().json()) {
    PrintJson(world, args.words().size() == 1, records);
    return 0;
  }
  for (size_t i = 0; i < records.size(); ++i) {
    if (i > 0) world.out().Line("");
    PrintJob(world, records[i]);
  }
  return 0;
}

}  // namespace

constinit const Command kQuery = {
    .name = "query",
    .aliases = kAliases,
    .summary = "all about a job: state, resources, last lines, where its logs are",
    .usage = "[--tasks] JOB...",
    .flags = kQueryFlags,
    .min_words = 1,
    .run = RunQuery,
    .job_words = true,
};

}  // namespace overcap::cli
