// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/commands/job_words.h"
#include "cli/table.h"

namespace overcap::cli {
namespace {

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
    OC_TRY(seconds, OfFlag("--since", ParseDurationSeconds(args.Get("--since"))));
    filter.since_us = world.clock().WallUs() - seconds * 1'000'000;
  }
  for (const std::string& list : args.All("--status")) {
    for (const std::string& name : Split(list, ',')) {
      const auto state = JobStateFromName(name);
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
  return FormatDuration(std::max<int64_t>(0, until - record.started_us) / 1'000'000);
}

std::string StateCell(const JobRecord& record) {
  if (record.state == JobState::kUnknown) return record.raw_state;
  if (record.state == JobState::kFailed && record.exit_status > 0)
    return StrCat("failed ", record.exit_status);
  return std::string(JobStateName(record.state));
}

std::string CommandCell(const JobRecord& record) {
  const std::string line = ShellJoin(record.spec.command);
  return record.spec.array.empty() ? line : StrCat("[", FormatArraySpec(record.spec.array), "] ", line);
}

void PrintTable(World& world, const std::vector<JobRecord>& records) {
  if (records.empty()) {
    world.out().Note("no jobs");
    return;
  }
  Table table({{"JOB"}, {"STATE"}, {"GPUS", true}, {"ELAPSED", true}, {"NAME"}, {"COMMAND", false, true}});
  const int64_t now_us = world.clock().WallUs();
  for (const JobRecord& record : records) {
    table.AddRow({record.spec.id, StateCell(record), StrCat(record.spec.resources.gpus),
                  Elapsed(record, now_us), record.spec.name, CommandCell(record)},
                 {Style::kPlain, StateStyle(record.state)});
  }
  world.out().Print(table);
}

Result<int> Run(World& world, const Args& args) {
  OC_TRY(cluster, world.GetCluster());
  OC_TRY(filter, ReadFilter(world, args));
  filter.detail = world.out().json() ? ListDetail::kFull : ListDetail::kTable;
  OC_TRY(records, cluster->List(filter));
  if (world.out().json()) {
    PrintRecordsJson(world, records);
  } else {
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
