// SPDX-License-Identifier: Apache-2.0
#include "control/why.h"

#include <unistd.h>

#include "base/text.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/commands/job_words.h"
#include "cli/commands/picture_words.h"
#include "cli/table.h"
#include "control/forecast_crew.h"
#include "control/look.h"
#include "control/past_runs.h"
#include "control/promise_record.h"
#include "control/why_promise.h"

namespace overcap::cli {
namespace {

constexpr int64_t kNewEnoughUs = 5'000'000;
constexpr int64_t kPatienceUs = 8'000'000;
constexpr int64_t kSendingUs = 1'000'000;  // a job may be that long on its way to the scheduler

// A picture that is older than a job cannot have it: then the cluster is asked again as soon as it may be,
// some 5 s after the last time.
Result<ClusterPicture> LookForJob(World& world, const JobRecord& record) {
  const int64_t until_us = world.clock().MonotonicUs() + kPatienceUs;
  while (true) {
    OC_TRY(seen, Look(world, {kNewEnoughUs, kNewEnoughUs}));
    const bool newer = seen.taken_us > record.spec.submitted_us + kSendingUs;
    if (newer || RowOf(seen, record) || !seen.stale.empty() || world.clock().MonotonicUs() > until_us)
      return seen;
    usleep(200'000);
  }
}

void Print(World& world, const JobRecord& record, const WhyAnswer& answer, const std::string& notes) {
  Output& out = world.out();
  const int64_t now_us = world.clock().WallUs();
  out.Line(StrCat("job ", out.Paint(Style::kBold, record.spec.id), ": ", answer.text,
                  answer.reason.empty() ? "" : StrCat(" (", answer.reason, ")")));
  for (const std::string& fact : answer.facts) out.Line("  " + fact);
  for (const std::string& line : StartWords(answer, now_us)) out.Line(line);
  if (answer.estimated_start_us > 0) {
    const int64_t in_s = (answer.estimated_start_us - now_us) / 1'000'000;
    out.Line(StrCat("the scheduler expects to start it at ", FormatTimeLocal(answer.estimated_start_us),
                    ", in ", FormatDuration(std::max<int64_t>(1, in_s))));
  }
  if (!answer.sooner.empty()) out.Line(out.Paint(Style::kBold, "sooner:"));
  for (const std::string& way : answer.sooner) out.Line("  " + way);
  out.Write(notes);
}

// Written down before it is told.
void Keep(World& world, const PictureJob& row, const JobRecord& record, const WhyAnswer& answer,
          int64_t now_us) {
  if (!answer.start || answer.start->p50_us == 0 || answer.start->p90_us == 0) return;
  StartPromise promise;
  promise.cluster = world.cluster_name(), promise.job = record.spec.id, promise.partition = row.partition;
  promise.made_us = now_us, promise.p50_us = answer.start->p50_us, promise.p90_us = answer.start->p90_us;
  promise.replays = answer.start->replays, promise.past_runs = answer.start->past_runs;
  promise.foreseen_p50_us = answer.start->foreseen_p50_us,
  promise.foreseen_p90_us = answer.start->foreseen_p90_us;
  const auto kept = PromiseFile(world.root()).Add(promise);
  if (!kept) world.out().Warn(StrCat("the promise could not be written down: ", kept.error().message));
}

// By what became of earlier promises; none where that cannot be known.
forecast::Correction LearnFromRecord(World& world, Cluster& cluster, const std::string& partition,
                                     int64_t now_us) {
  PromiseFile file(world.root());
  const auto before = file.Load();
  if (!before || before->size() < static_cast<size_t>(forecast::kFewestPromises)) return {};
  if (!SettlePromises(cluster, world.cluster_name(), &file, now_us)) return {};
  const auto kept = file.Load();
  return kept ? CorrectionOf(*kept, world.cluster_name(), partition, now_us) : forecast::Correction();
}

void Foretell(World& world, Cluster& cluster, const ClusterPicture& picture, const JobRecord& record,
              int replays, WhyAnswer* answer) {
  const auto at = RowOf(picture, record);
  if (!at || !picture.jobs[*at].nodes.empty()) return;
  const int64_t now_us = world.clock().WallUs();
  const std::optional<Policy> policy = PolicyInForce(cluster);
  auto past = PastRunsOf(cluster, now_us, policy.has_value());
  AddNumbers(picture, picture.jobs[*at], policy ? &*policy : nullptr, now_us, answer);
  Promise(picture, *at, past ? *past : std::vector<PastRun>(), now_us,
          {replays, 1, policy ? &*policy : nullptr,
           LearnFromRecord(world, cluster, picture.jobs[*at].partition, now_us)},
          CrewOfThisMachine(), answer);
  if (!past && answer->start)
    answer->start->assumed.push_back(StrCat("past runs could not be read: ", past.error().message));
  if (!picture.stale.empty() && answer->start) {
    answer->start.reset();
    answer->no_promise = "no promise: what is known of the queue is old";
    return;
  }
  Keep(world, picture.jobs[*at], record, *answer, now_us);
}

std::string Share(int held, int broken) {
  const int all = held + broken;
  return all == 0 ? "-" : StrCat(held, " of ", all, " (", (200 * held + all) / (2 * all), " %)");
}

Result<int> ShowRecord(World& world) {
  PromiseFile file(world.root());
  OC_TRY(cluster, world.GetCluster());
  const int64_t now_us = world.clock().WallUs();
  if (const auto settled = SettlePromises(*cluster, world.cluster_name(), &file, now_us); !settled)
    world.out().Warn(StrCat("what became of the last promises is not known: ", settled.error().message));
  OC_TRY(kept, file.Load());
  const std::vector<PromiseRow> rows = CountPromises(kept, now_us);
  if (world.out().json()) {
    world.out().Json(PromisesToJson(rows));
    return 0;
  }
  if (rows.empty()) {
    world.out().Line("no promises were made yet: overcap why JOB makes one for a job that waits");
    return 0;
  }
  Table table({{"CLUSTER"},
               {"PARTITION"},
               {"PROMISES", true},
               {"JOBS", true},
               {"P50 HELD", true},
               {"P90 HELD", true},
               {"OPEN", true}});
  for (const PromiseRow& row : rows) {
    table.AddRow({row.cluster, row.partition, StrCat(row.promises), StrCat(row.jobs),
                  Share(row.p50_held, row.p50_broken), Share(row.p90_held, row.p90_broken),
                  StrCat(row.open)});
  }
  world.out().Print(table);
  world.out().Line("P50 should hold in about 50 %, P90 in about 90 %");
  return 0;
}

Result<int> RunWhy(World& world, const Args& args) {
  if (args.Has("--record")) {
    if (!args.words().empty())
      return Fail(ErrorCode::kUsage, "--record takes no job", "overcap why --record");
    return ShowRecord(world);
  }
  if (args.words().empty())
    return Fail(ErrorCode::kUsage, "a job is missing", "overcap why JOB, or overcap why --record");
  OC_TRY(replays, args.GetInt("--replays", 200, 1, 5000));
  OC_TRY(records, QueryJobs(world, args.words()));
  const JobRecord& record = records.front();
  const int64_t now_us = world.clock().WallUs();
  std::optional<ClusterPicture> picture;
  OC_TRY(cluster, world.GetCluster());
  if (!IsFinal(record.state)) {
    OC_TRY(seen, LookForJob(world, record));
    picture = std::move(seen);
  }
  const bool view = picture && HasView(*cluster);
  const bool runs = record.state == JobState::kRunning;
  WhyAnswer answer = ExplainJob(record, view || (picture && runs) ? &*picture : nullptr, now_us);
  if (picture) Foretell(world, *cluster, *picture, record, static_cast<int>(replays), &answer);
  if (world.out().json()) {
    world.out().Json(WhyToJson(record, answer));
  } else {
    Print(world, record, answer, view ? PictureNotes(*picture, now_us, false) : "");
  }
  return 0;
}

constexpr Flag kWhyFlags[] = {
    {.name = "--record", .summary = "how often promises held, by cluster and partition"},
    {.name = "--replays", .value = "N", .summary = "replays of the queue that a promise rests on (200)"},
};

}  // namespace

constinit const Command kWhy = {
    .name = "why",
    .summary = "why a job waits and when it will start, or how it ended; what would start sooner",
    .usage = "[--replays N] JOB | --record",
    .flags = kWhyFlags,
    .max_words = 1,
    .run = RunWhy,
    .job_words = true,
};

}  // namespace overcap::cli
