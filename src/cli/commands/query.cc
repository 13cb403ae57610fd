// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/commands/job_words.h"
#include "control/job_exit_status.h"
#include "control/job_text.h"
#include "control/log_file.h"
#include "control/logs.h"

namespace overcap::cli {
namespace {

constexpr int64_t kTailLines = 100;
constexpr int64_t kTailBytes = 1 << 20;
constexpr size_t kMostPaths = 20;

constexpr std::string_view kAliases[] = {"q"};

void Fact(Output& out, std::string_view word, std::string_view value) {
  if (value.empty()) return;
  out.Line(StrCat(out.Paint(Style::kDim, StrCat(word, std::string(11 - word.size(), ' '))), value));
}

std::string AttemptText(const JobRecord& record) {
  if (record.attempt == 0) return "none yet";
  return StrCat(record.attempt, record.restarts > 0 ? StrCat(" (", record.restarts, " restarts)") : "");
}

std::string TasksText(const JobRecord& record) {
  if (record.spec.array.empty()) return {};
  const TaskCounts& tasks = record.tasks;
  return StrCat(FormatArraySpec(record.spec.array), ": ", tasks.total, " tasks, ", tasks.queued, " queued, ",
                tasks.running, " running, ", tasks.succeeded, " succeeded, ", tasks.failed, " failed, ",
                tasks.lost, " lost");
}

std::string FailureText(const JobRecord& record) {
  if (record.first_failed_rank < 0) return {};
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
  Fact(out, "tasks", TasksText(record));
  Fact(out, "command", ShellJoin(spec.command));
  Fact(out, "resources", ResourcesLine(record));
  Fact(out, "code", spec.snapshot.empty() ? "" : StrCat(spec.snapshot, " of ", spec.source));
  Fact(out, "workdir", spec.workdir);
  Fact(out, "submitted", time(spec.submitted_us));
  Fact(out, "started", time(record.started_us));
  Fact(out, "ended", time(record.ended_us));
  Fact(out, "again of", spec.resubmit_of);
  Fact(out, "folder", record.dir);
}

// The rank whose end the user wants to read: the one that failed first, else rank 0.
void PrintTail(Output& out, const JobRecord& record) {
  LogRequest request;
  request.ranks = {record.first_failed_rank > 0 ? record.first_failed_rank : 0};
  const auto logs = SelectLogs(record, request);
  if (!logs) return;
  const LogFile& log = logs->front();
  const std::string text = TailText(log.path, kTailLines, kTailBytes);
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
  if (record.logs.empty()) return;
  out.Line(out.Paint(Style::kDim, "--- logs ---"));
  const bool all = record.logs.size() <= kMostPaths || !out.terminal().out_is_terminal;
  const size_t shown = all ? record.logs.size() : kMostPaths;
  for (size_t i = 0; i < shown; ++i) out.Line(record.logs[i].path);
  if (!all) out.Line(StrCat("and ", record.logs.size() - shown, " more in ", record.dir));
}

void PrintJob(World& world, const JobRecord& record) {
  PrintFacts(world, record);
  PrintTail(world.out(), record);
  PrintLogPaths(world.out(), record);
}

Result<int> Run(World& world, const Args& args) {
  OC_TRY(records, QueryJobs(world, args.words()));
  if (world.out().json()) {
    if (args.words().size() == 1) {
      PrintRecordJson(world, records.front());
    } else {
      PrintRecordsJson(world, records);
    }
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
    .usage = "JOB...",
    .min_words = 1,
    .run = Run,
    .job_words = true,
};

}  // namespace overcap::cli
