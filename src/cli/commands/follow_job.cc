// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/follow_job.h"

#include <algorithm>

#include "base/plain_lines.h"
#include "base/text.h"
#include "cli/commands/job_words.h"
#include "control/job_exit_status.h"
#include "control/job_text.h"
#include "control/log_file.h"
#include "control/logs.h"
#include "control/look.h"

namespace overcap::cli {
namespace {

constexpr int64_t kLastLines = 20, kLastBytes = 1 << 16;  // of a rank that failed
constexpr int64_t kForever = 10LL * 365 * 86400;          // seconds

std::string DetachHint(const std::string& id) {
  return StrCat("detached; job '", id, "' goes on. overcap logs -f ", id, " follows it, overcap abort ", id,
                " stops it");
}

int Finish(World& world, const JobRecord& record) {
  if (world.out().json()) {
    PrintRecordJson(world, record);
  } else {
    world.out().Note(StrCat("job '", record.spec.id, "' ", StateText(record, world.clock().WallUs())));
  }
  return JobExitStatus(record);
}

// Which rank failed first, and its last lines where its log is not among those that were shown.
void TellFailure(World& world, const JobRecord& record, const std::vector<int>& shown_ranks) {
  const std::string line = FailureLine(record);
  if (line.empty() || world.out().quiet() || record.spec.resources.world_size() == 1) return;
  world.out().Note(line);
  const int rank = record.first_failed_rank;
  const bool shown = shown_ranks.empty() || std::ranges::count(shown_ranks, rank) > 0;
  const auto logs = shown ? Result<std::vector<LogFile>>() : SelectLogs(record, {.ranks = {rank}});
  if (!logs || logs->empty()) return;
  auto reader = OpenLog(record, logs->front());
  const std::string text = reader ? TailText(*std::move(reader), kLastLines, kLastBytes) : "";
  const std::string_view lines = Trim(text);
  std::string quoted;
  for (const std::string& each : lines.empty() ? std::vector<std::string>() : Split(lines, '\n'))
    quoted += StrCat("  | ", PlainText(each), "\n");
  if (!quoted.empty()) world.out().WriteAside(StrCat("the last lines that it wrote:\n", quoted));
}

bool ShowsProgress(const Output& out) {
  return out.terminal().err_is_terminal && !out.quiet() && !out.json();
}

// The first job that has not ended, and how many others.
void ShowProgress(World& world, const std::vector<JobRecord>& records) {
  const JobRecord* first = nullptr;
  size_t open = 0;
  for (const JobRecord& record : records) {
    if (IsFinal(record.state)) continue;
    if (open++ == 0) first = &record;
  }
  if (first == nullptr) return;
  const std::string others = open > 1 ? StrCat(open, " of ", records.size(), " jobs have not ended; ") : "";
  world.out().Progress(others + WaitingText(*first, world.clock().WallUs()));
}

}  // namespace

Result<int> FollowJob(World& world, Cluster& cluster, const std::string& id, const LogRequest& request) {
  OC_TRY_VOID(world.out().Flush());
  DetachOnInterrupt(DetachHint(id));
  const bool json = world.out().json();
  bool at_line_start = true;
  const LogSink sink = [&](std::string_view bytes) {
    if (bytes.empty()) {
      (void)world.out().Flush();
      return;
    }
    json ? world.out().WriteAside(bytes) : world.out().Write(bytes);
    at_line_start = bytes.back() == '\n';
  };
  const auto on_attempt = [&](int attempt) { world.out().Note(StrCat("attempt ", attempt, " begins")); };
  LogWaiting waiting;
  if (ShowsProgress(world.out())) {
    waiting = [&](const JobRecord& record) {
      if (at_line_start) world.out().Progress(WaitingText(record, world.clock().WallUs()));
    };
  }
  OC_TRY(record, FollowLogs(cluster, id, request, sink, on_attempt, SleepFor, waiting));
  if (!at_line_start && world.out().terminal().out_is_terminal && !json) world.out().Write("\n");
  OC_TRY_VOID(world.out().Flush());
  const int status = Finish(world, record);
  if (!json) TellFailure(world, record, request.ranks);
  return status;
}

Result<bool> WaitForAll(World& world, Cluster& cluster, const std::vector<std::string>& ids,
                        int64_t timeout_seconds) {
  if (!ShowsProgress(world.out())) return cluster.Wait(ids, WaitUntil::kEnded, timeout_seconds);
  const int64_t deadline_us = world.clock().MonotonicUs() + timeout_seconds * 1'000'000;
  while (true) {
    const int64_t left_us = deadline_us - world.clock().MonotonicUs();
    OC_TRY(done, cluster.Wait(ids, WaitUntil::kEnded, std::clamp<int64_t>(left_us / 1'000'000, 0, 1)));
    if (done || left_us <= 0) {
      world.out().ClearProgress();
      return done;
    }
    OC_TRY(records, cluster.QueryRecent(ids, kWatchAgeUs));
    ShowProgress(world, records);
  }
}

Result<int> WaitForJob(World& world, Cluster& cluster, const std::string& id) {
  OC_TRY_VOID(world.out().Flush());
  DetachOnInterrupt(DetachHint(id));
  while (true) {
    OC_TRY(done, WaitForAll(world, cluster, {id}, kForever));
    if (done) break;
  }
  OC_TRY(records, cluster.Query({id}));
  return Finish(world, records.front());
}

}  // namespace overcap::cli
