// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/json_scan.h"
#include "base/json_writer.h"
#include "base/plain_lines.h"
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
constexpr int kMostPaths = 16;  // of ranks
constexpr size_t kMostTasks = 20;
constexpr size_t kMostEvents = 20;

constexpr Flag kQueryFlags[] = {
    {"--tasks", "", "", "what became of each task of an array"},
    kFromFlag,
};

constexpr std::string_view kAliases[] = {"q"};

// A job's own words do nothing to a terminal but stand there.
std::string Shown(const Output& out, std::string_view text) {
  return out.terminal().out_is_terminal ? PlainText(text) : std::string(text);
}

void Fact(Output& out, std::string_view word, std::string_view value, Style style = Style::kPlain) {
  if (value.empty()) return;
  out.Line(StrCat(out.Paint(Style::kDim, StrCat(word, std::string(11 - word.size(), ' '))),
                  out.Paint(style, Shown(out, value))));
}

std::string AttemptText(const JobRecord& record) {
  if (record.attempt == 0) return IsFinal(record.state) ? "none" : "none yet";
  return StrCat(record.attempt,
                record.restarts > 0 ? StrCat(" (", CountOf(record.restarts, "restart"), ")") : "");
}

void PrintFacts(World& world, const JobRecord& record) {
  Output& out = world.out();
  const JobSpec& spec = record.spec;
  const auto time = [](int64_t us) { return us > 0 ? FormatTimeLocal(us) : std::string(); };
  Fact(out, "job", spec.id, Style::kBold);
  Fact(out, "name", spec.name);
  Fact(out, "state", StateText(record, world.clock().WallUs()), StateStyle(record.state));
  Fact(out, "failure", FailureLine(record));
  Fact(out, "attempt", AttemptText(record));
  if (spec.user != world.user()) Fact(out, "user", spec.user);
  Fact(out, "lab", spec.lab);
  if (!record.cluster_job.empty())
    Fact(out, "cluster", StrCat(spec.cluster, ", its job ", record.cluster_job));
  Fact(out, "nodes", record.node_list);
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
  for (const std::string& note : ReadJobNotes(record)) Fact(out, "note", note);
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
  out.Write(Shown(out, text));
  if (text.back() != '\n') out.Line("");
}

void PrintLogPaths(Output& out, const JobRecord& record) {
  const bool array = !record.spec.array.empty();
  if (array ? record.attempt == 0 : record.logs.empty()) return;
  out.Line(out.Paint(Style::kDim, "--- logs ---"));
  if (record.dir.empty()) return;  // of another user
  if (array) return out.Line(record.dir + "/attempt-1/task-*.rank-*.log");
  const bool in_folder = record.logs.front().path.starts_with(record.dir + "/attempt-");
  if (in_folder && LogsOf(record.spec.resources) > kMostPaths)
    return out.Line(StrCat(record.dir, record.attempt > 1 ? "/attempt-*" : "/attempt-1", "/rank-*.log"));
  const bool all = record.logs.size() <= size_t{kMostPaths} || !out.terminal().out_is_terminal;
  const size_t shown = all ? record.logs.size() : size_t{kMostPaths};
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
  for (size_t i = first; i < story.lines.size(); ++i) out.Line(Shown(out, story.lines[i]));
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
void AddDetails(World& world, JobRecord* record) {
  AddNodeLogs(record);
  if (record->spec.array.empty()) return;
  AddFailedTasks(record);
  if (world.out().json()) record->logs = ListTaskLogs(*record);
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

// What the owner's own client says, which the owner might have had a hand in: one object, and about this job.
Result<std::string> OwnersJson(World& world, const OwnersRun& run, const JobRecord& record) {
  OC_TRY(end, RunOwnersCommand(world, run));
  const std::string json(Trim(end.out));
  if (end.exit_status == 0 && JsonElements(StrCat("[", json, "]")).size() == 1 &&
      JsonString(JsonMember(json, "id")) == record.spec.id &&
      JsonString(JsonMember(json, "user")) == record.spec.user)
    return json;
  return Fail(ErrorCode::kUnavailable,
              StrCat("the folder of job '", record.spec.id, "' could not be read as user '",
                     ToUtf8(record.spec.user), "'"));
}

// The jobs that were named, each with the rights that it takes.
class Shower {
 public:
  Shower(World& world, const Args& args, Cluster& cluster) : world_(world), args_(args), cluster_(cluster) {}

  Result<int> ShowTasks(const JobRecord& record) {
    OC_TRY(right, RightTo(world_, cluster_, record, JobVerb::kTasks));
    if (right != FilesRight::kAsOwner) return PrintTasks(world_, record);
    OC_TRY(end, RunOwnersCommand(world_, Run(record)));
    return end.exit_status;
  }

  Result<int> Show(std::vector<JobRecord> records, bool one) {
    int status = 0;
    std::vector<std::string> each;
    for (JobRecord& record : records) {
      OC_TRY(right, RightTo(world_, cluster_, record, JobVerb::kQuery));
      const bool as_owner = right == FilesRight::kAsOwner;
      if (!as_owner) AddDetails(world_, &record);
      if (world_.out().json()) {
        OC_TRY(json, as_owner ? OwnersJson(world_, Run(record), record)
                              : Result<std::string>(JsonOf(world_, record)));
        each.push_back(std::move(json));
        continue;
      }
      if (&record != &records.front()) world_.out().Line("");
      if (!as_owner) {
        PrintJob(world_, record);
        continue;
      }
      OC_TRY(end, RunOwnersCommand(world_, Run(record)));
      if (status == 0) status = end.exit_status;
    }
    if (world_.out().json()) world_.out().Json(one ? each.front() : StrCat("[", Join(each, ",\n"), "]"));
    return status;
  }

 private:
  OwnersRun Run(const JobRecord& record) const {
    OwnersRun run = OwnersCommand(world_, cluster_, record, "query", args_, {record.spec.id});
    run.clean = true;
    run.capture = world_.out().json() && !args_.Has("--tasks");
    return run;
  }

  World& world_;
  const Args& args_;
  Cluster& cluster_;
};

Result<int> RunQuery(World& world, const Args& args) {
  const bool tasks = args.Has("--tasks");
  if (tasks && args.words().size() > 1)
    return Fail(ErrorCode::kUsage, "--tasks shows the tasks of one job", "name one JOB");
  std::unique_ptr<Cluster> stored;
  OC_TRY(jobs, JobsFrom(world, args, &stored));
  OC_TRY(records, jobs.cluster->Query(jobs.ids));
  Shower shower(world, args, *jobs.cluster);
  if (tasks) return shower.ShowTasks(records.front());
  return shower.Show(std::move(records), args.words().size() == 1);
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
