// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/commands/follow_job.h"
#include "cli/commands/job_words.h"

namespace overcap::cli {
namespace {

constexpr Flag kAbortFlags[] = {
    {"--no-wait", "", "", "return at once, before they have ended"},
    {"--reason", "", "TEXT", "kept with the jobs"},
};

// After the grace time ranks are killed; a process that even then stays is stuck in the kernel.
int64_t PatienceSeconds(const Config& config) {
  return config.jobs.grace_seconds + 60;
}

Result<int> RunAbort(World& world, const Args& args) {
  OC_TRY(jobs, ResolveJobs(world, args.words(), "abort"));
  const std::string reason =
      args.Has("--reason") ? std::string(args.Get("--reason")) : StrCat("cancelled by ", world.user());
  OC_TRY_VOID(jobs.cluster->Cancel(jobs.ids, reason));
  bool done = true;
  if (!args.Has("--no-wait")) {
    OC_TRY(ended, WaitForAll(world, *jobs.cluster, jobs.ids, PatienceSeconds(world.config())));
    done = ended;
  }
  OC_TRY(records, jobs.cluster->Query(jobs.ids));
  if (world.out().json()) {
    PrintJobsJson(world, args.words(), records);
  } else if (!world.out().quiet()) {
    for (const JobRecord& record : records) {
      world.out().Line(StrCat(record.spec.id, "  ", StateText(record, world.clock().WallUs())));
    }
  }
  if (done) return 0;
  return Fail(ErrorCode::kUnavailable, "not all of these jobs have ended yet",
              "they have been told to; `overcap wait` waits for them");
}

}  // namespace

constinit const Command kAbort = {
    .name = "abort",
    .summary = "stop jobs, whether they wait or run",
    .usage = "[--no-wait] [--reason TEXT] JOB...",
    .flags = kAbortFlags,
    .min_words = 1,
    .run = RunAbort,
    .job_words = true,
};

}  // namespace overcap::cli
