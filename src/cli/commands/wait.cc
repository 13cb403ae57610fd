// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/commands/follow_job.h"
#include "cli/commands/job_words.h"
#include "control/job_exit_status.h"

namespace overcap::cli {
namespace {

constexpr int64_t kForever = 10LL * 365 * 86400;  // seconds

constexpr Flag kWaitFlags[] = {{"--timeout", "", "TIME", "give up after that: 30s, 4h"}};

Result<int> RunWait(World& world, const Args& args) {
  int64_t timeout = kForever;
  if (args.Has("--timeout")) {
    OC_TRY(seconds, OfFlag(args.Typed("--timeout"), ParseDurationSeconds(args.Get("--timeout"))));
    timeout = seconds;
  }
  OC_TRY(jobs, ResolveJobs(world, args.words()));
  DetachOnInterrupt("stopped waiting; the job goes on");
  OC_TRY(done, WaitForAll(world, *jobs.cluster, jobs.ids, timeout));
  OC_TRY(records, jobs.cluster->Query(jobs.ids));
  if (world.out().json()) {
    PrintJobsJson(world, args.words(), records);
  } else {
    for (const JobRecord& record : records) {
      world.out().Note(StrCat("job '", record.spec.id, "' ", StateText(record, world.clock().WallUs())));
    }
  }
  return done ? JobsExitStatus(records) : kStatusTimedOut;
}

}  // namespace

constinit const Command kWait = {
    .name = "wait",
    .summary = "wait until jobs have ended, and return their exit status",
    .usage = "[--timeout TIME] JOB...",
    .flags = kWaitFlags,
    .min_words = 1,
    .run = RunWait,
    .job_words = true,
};

}  // namespace overcap::cli
