// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/commands/job_words.h"

namespace overcap::cli {
namespace {

Result<int> RunHold(World& world, const Args& args) {
  OC_TRY(jobs, ResolveJobs(world, args.words(), "hold"));
  OC_TRY_VOID(jobs.cluster->Hold(jobs.ids));
  OC_TRY(records, jobs.cluster->Query(jobs.ids));
  if (world.out().json()) {
    PrintJobsJson(world, args.words(), records);
    return 0;
  }
  for (const JobRecord& record : records) {
    world.out().Note(StrCat(record.spec.id, "  ", StateText(record, world.clock().WallUs())));
  }
  return 0;
}

}  // namespace

constinit const Command kHold = {
    .name = "hold",
    .summary = "keep waiting jobs from starting",
    .usage = "JOB...",
    .min_words = 1,
    .run = RunHold,
    .job_words = true,
};

}  // namespace overcap::cli
