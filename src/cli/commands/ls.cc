// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/commands/job_words.h"
#include "cli/table.h"
#include "cli/watch.h"

namespace overcap::cli {
namespace {

constexpr size_t kMostExplained = 20;
constexpr int kMostNameWidth = 30;  // on a terminal

constexpr Flag kLsFlags[] = {
    {"--all", "-a", "", "also what ended long ago"},
    {"--status", "", "STATES", "only these: queued,running,failed,...", true},
    {"--user", "", "NAME", "only jobs of that user"},
    {"--since", "", "TIME", "submitted or ended in the last 30m, 4h, 2d"},
    {"--watch", "-w", "", "again and again, until Ctrl-C"},
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

// The table of jobs, built one by one.
class JobsTable {
 public:
  JobsTable(int64_t now_us, bool narrow) : now_us_(now_us), narrow_(narrow) {}

  void Add(const JobRecord& record) {
    const bool unexplained = record.state == JobState::kQueued && record.reason.empty();
    if (unexplained && unexplained_.size() < kMostExplained)
      unexplained_.push_back({table_.rows(), record.spec.id});
    if (stale_.empty()) stale_ = record.stale;
    const std::string& whole = record.spec.name;
    const std::string name = narrow_ ? ShortenToWidth(ToUtf8(whole), kMostNameWidth) : whole;
    table_.AddRow({record.spec.id, StateCell(record), StrCat(record.spec.resources.gpus),
                   FormatDuration((now_us_ - record.spec.submitted_us) / 1'000'000), Elapsed(record, now_us_),
                   record.spec.lab, record.partition, name, record.reason, CommandCell(record)},
                  {Style::kPlain, StateStyle(record.state)});
  }

  // Lists know only what is written down; why a job waits is asked for the first few of which they do not say
  // it.
  void FindReasons(Cluster& cluster) {
    std::vector<std::string> ids;
    for (const Unexplained& job : unexplained_) ids.push_back(job.id);
    if (ids.empty()) return;
    const auto asked = cluster.Query(ids);
    if (!asked || asked->size() != ids.size()) return;  // one was removed meanwhile
    for (size_t i = 0; i < ids.size(); ++i)
      table_.SetCell(unexplained_[i].row, kReasonColumn, (*asked)[i].reason);
  }

  std::string Text(int width, bool color) const {
    if (table_.rows() == 0) return {};
    // Of jobs whose cluster could not be asked: told once, with the age of what is shown.
    const std::string note = stale_.empty() ? "" : StrCat("not new: ", ToUtf8(stale_), "\n");
    return table_.Render(width, color) + note;
  }

 private:
  struct Unexplained {
    size_t row;
    std::string id;
  };
  static constexpr size_t kReasonColumn = 8;

  const int64_t now_us_;
  const bool narrow_;  // long names are cut
  Table table_{{{"JOB"},
                {"STATE"},
                {"GPUS", true},
                {"AGE", true},
                {"ELAPSED", true},
                {"LAB"},
                {"PARTITION"},
                {"NAME"},
                {"REASON", false, true},
                {"COMMAND", false, true}}};
  std::vector<Unexplained> unexplained_;
  std::string stale_;
};

ListDetail DetailFor(const Output& out) {
  if (out.json()) return ListDetail::kFull;
  return out.quiet() ? ListDetail::kStored : ListDetail::kTable;
}

Result<std::string> Frame(World& world, Cluster& cluster, const JobFilter& filter, int width, bool color) {
  if (world.out().json()) {
    OC_TRY(records, cluster.List(filter));
    return RecordsJson(world, records) + "\n";
  }
  if (world.out().quiet()) {
    std::string ids;
    OC_TRY_VOID(cluster.ForEach(filter, [&](const JobRecord& record) { ids += record.spec.id + "\n"; }));
    return ids;
  }
  JobsTable table(world.clock().WallUs(), width > 0);
  OC_TRY_VOID(cluster.ForEach(filter, [&](const JobRecord& record) { table.Add(record); }));
  table.FindReasons(cluster);
  return table.Text(width, color);
}

Result<int> WatchJobs(World& world, Cluster& cluster, const JobFilter& filter) {
  return Watch(world, [&](int width, bool color) -> Result<std::string> {
    OC_TRY(text, Frame(world, cluster, filter, width, color));
    if (world.out().json() || world.out().quiet()) return text;
    const std::string age = StrCat(FormatTimeLocal(world.clock().WallUs()), "\n");
    return text.empty() ? "no jobs\n" + age : text + age;
  });
}

Result<int> RunLs(World& world, const Args& args) {
  OC_TRY(cluster, world.GetCluster());
  OC_TRY(filter, ReadFilter(world, args));
  filter.detail = DetailFor(world.out());
  if (args.Has("--watch")) return WatchJobs(world, *cluster, filter);
  const Terminal& terminal = world.out().terminal();
  OC_TRY(text, Frame(world, *cluster, filter, terminal.width, terminal.out_color));
  if (text.empty() && !world.out().quiet()) world.out().Note("no jobs");
  world.out().Write(text);
  return 0;
}

}  // namespace

constinit const Command kLs = {
    .name = "ls",
    .summary = "list jobs: those that have not ended, and the last that have",
    .usage = "[--all] [--status STATES] [--user NAME] [--since TIME] [--watch]",
    .flags = kLsFlags,
    .max_words = 0,
    .run = RunLs,
};

}  // namespace overcap::cli
