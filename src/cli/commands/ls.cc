// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/commands/job_words.h"
#include "cli/table.h"

namespace overcap::cli {
namespace {

constexpr size_t kMostExplained = 20;

constexpr Flag kFlags[] = {
    {"--all", "-a", "", "also what ended long ago"},
    {"--status", "", "STATES", "only these: queued,running,failed,...", true},
    {"--user", "", "NAME", "only jobs of that user"},
    {"--since", "", "TIME", "submitted or ended in the last 30m, 4h, 2d"},
};

Result<JobFilter> ReadFilter(World& world, const Args& args) {
  JobFilter filter;
  filter.all = args.Has("--all");
  filter.user = args.Get("--user");
  if (args.Has("--since")) {
    OC_TRY(seconds, OfFlag(args.Typed("--since"), ParseDurationSeconds(args.Get("--since"))));
    filter.since_us = world.clock().WallUs() - seconds * 1'000'000;
  }
  for (const std::string& list : args.All("--status")) {
    for (const std::string& name : Split(list, ',')) {
      const auto state = JobStateFromName(Trim(name));
      if (!state) {
        return Fail(ErrorCode::kUsage, StrCat("'", name, "' is no state of a job"),
                    "states are: held, queued, running, succeeded, failed, cancelled, preempted, lost");
      }
      filter.states.push_back(*state);
    }
  }
  return filter;
}

std::string Elapsed(const JobRecord& record, int64_t now_us) {
  if (record.started_us == 0) return "";
  const int64_t until = record.ended_us > 0 ? record.ended_us : now_us;
  return FormatElapsed(until - record.started_us);
}

std::string StateCell(const JobRecord& record) {
  if (record.state == JobState::kUnknown) return record.raw_state;
  if (record.state == JobState::kFailed && record.exit_status > 0)
    return StrCat("failed ", record.exit_status);
  return std::string(JobStateName(record.state));
}

std::string CommandCell(const JobRecord& record) {
  const std::string line = CommandText(record.spec.command);
  return record.spec.array.empty() ? line : StrCat("[", FormatArraySpec(record.spec.array), "] ", line);
}

// Lists know only what is written down; why a job waits is asked for the first few.
void FindReasons(Cluster& cluster, std::vector<JobRecord>& records) {
  std::vector<JobRecord*> queued;
  std::vector<std::string> ids;
  for (JobRecord& record : records) {
    if (record.state != JobState::kQueued || ids.size() == kMostExplained) continue;
    queued.push_back(&record);
    ids.push_back(record.spec.id);
  }
  if (ids.empty()) return;
  const auto asked = cluster.Query(ids);
  if (!asked || asked->size() != ids.size()) return;  // one was removed meanwhile
  for (size_t i = 0; i < ids.size(); ++i) queued[i]->reason = (*asked)[i].reason;
}

void PrintTable(World& world, const std::vector<JobRecord>& records) {
  Table table({{"JOB"},
               {"STATE"},
               {"GPUS", true},
               {"AGE", true},
               {"ELAPSED", true},
               {"NAME"},
               {"REASON", false, true},
               {"COMMAND", false, true}});
  const int64_t now_us = world.clock().WallUs();
  for (const JobRecord& record : records) {
    table.AddRow({record.spec.id, StateCell(record), StrCat(record.spec.resources.gpus),
                  FormatDuration((now_us - record.spec.submitted_us) / 1'000'000), Elapsed(record, now_us),
                  record.spec.name, record.reason, CommandCell(record)},
                 {Style::kPlain, StateStyle(record.state)});
  }
  world.out().Print(table);
}

void PrintIds(Output& out, const std::vector<JobRecord>& records) {
  for (const JobRecord& record : records) out.Line(record.spec.id);
}

ListDetail DetailFor(const Output& out) {
  if (out.json()) return ListDetail::kFull;
  return out.quiet() ? ListDetail::kStored : ListDetail::kTable;
}

Result<int> Run(World& world, const Args& args) {
  OC_TRY(cluster, world.GetCluster());
  OC_TRY(filter, ReadFilter(world, args));
  filter.detail = DetailFor(world.out());
  OC_TRY(records, cluster->List(filter));
  if (world.out().json()) {
    PrintRecordsJson(world, records);
  } else if (world.out().quiet()) {
    PrintIds(world.out(), records);
  } else if (records.empty()) {
    world.out().Note("no jobs");
  } else {
    FindReasons(*cluster, records);
    PrintTable(world, records);
  }
  return 0;
}

}  // namespace

constinit const Command kLs = {
    .name = "ls",
    .summary = "list jobs: those that have not ended, and the last that have",
    .usage = "[--all] [--status STATES] [--user NAME] [--since TIME]",
    .flags = kFlags,
    .max_words = 0,
    .run = Run,
};

}  // namespace overcap::cli
